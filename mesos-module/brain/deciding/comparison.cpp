#include "brain/deciding/comparison.hpp"

#include <algorithm>
#include <iterator>

namespace allocator {
namespace brain {
namespace {

bool has(const std::vector<uint32_t>& all, uint32_t one)
{
  return std::find(all.begin(), all.end(), one) != all.end();
}

} // namespace {


void Comparison::ask()
{
  offered.clear();
}


void Comparison::decide(
    uint32_t agent,
    uint32_t framework,
    bool passes,
    int64_t expiresMs)
{
  auto others = offered.find(agent);
  const bool contested = others != offered.end();

  if (contested && has(others->second, framework)) {
    ++counted.same;
    return;
  }

  if ((!passes && !contested) || waiting >= WISHES_MAX) {
    return;
  }

  // A repeated decision keeps its first deadline.
  std::vector<Wish>& here = wishes[agent];
  for (Wish& wish : here) {
    if (wish.framework == framework) {
      wish.contested = wish.contested || contested;
      return;
    }
  }

  here.push_back(Wish{framework, expiresMs, contested});
  ++waiting;
}


void Comparison::offer(uint32_t agent, uint32_t framework, bool asked)
{
  ++counted.offers;

  if (asked) {
    std::vector<uint32_t>& here = offered[agent];
    if (!has(here, framework)) {
      here.push_back(framework);
    }
  }

  auto found = wishes.find(agent);
  if (found == wishes.end()) {
    return;
  }

  std::vector<Wish>& here = found->second;
  for (size_t i = 0; i < here.size();) {
    if (here[i].framework == framework) {
      ++counted.same;
      --waiting;
      here.erase(here.begin() + i);
    } else {
      here[i++].contested = true;
    }
  }
}


void Comparison::expire(int64_t nowMs)
{
  for (auto entry = wishes.begin(); entry != wishes.end();) {
    std::vector<Wish>& here = entry->second;

    for (size_t i = 0; i < here.size();) {
      if (here[i].expiresMs > nowMs) {
        ++i;
        continue;
      }
      ++(here[i].contested ? counted.other : counted.none);
      --waiting;
      here.erase(here.begin() + i);
    }

    entry = here.empty() ? wishes.erase(entry) : std::next(entry);
  }
}


void Comparison::forgetAgent(uint32_t agent)
{
  offered.erase(agent);

  auto found = wishes.find(agent);
  if (found != wishes.end()) {
    waiting -= found->second.size();
    wishes.erase(found);
  }
}


void Comparison::forgetFramework(uint32_t framework)
{
  for (auto& entry : offered) {
    std::vector<uint32_t>& here = entry.second;
    here.erase(std::remove(here.begin(), here.end(), framework), here.end());
  }

  for (auto& entry : wishes) {
    std::vector<Wish>& here = entry.second;
    const auto gone =
        std::remove_if(here.begin(), here.end(), [=](const Wish& wish) {
          return wish.framework == framework;
        });
    waiting -= here.end() - gone;
    here.erase(gone, here.end());
  }
}

} // namespace brain {
} // namespace allocator {
