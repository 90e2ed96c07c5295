#include "brain/fallback.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "brain/competition.hpp"

namespace allocator {
namespace brain {
namespace {

bool hasAnything(const Cluster& cluster, uint32_t agent)
{
  const Agent& record = *cluster.agents.find(agent);
  return std::any_of(
      record.slots.begin(), record.slots.end(), [&](const Slot& slot) {
        return cluster.books.free(slot) > 0;
      });
}


// Whether some of it is what the role's guarantee still needs.
bool isNeeded(const Cluster& cluster, uint32_t role, const Parts& parts)
{
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
    const PieceTable::Row& piece = cluster.pieces.row(part.piece);
    return piece.traits.quotaCounts() &&
        cluster.sums.missing(role, piece.name) > 0;
  });
}


// A copy of a shared volume is offered once in a cycle.
Parts without(const Parts& parts, const std::vector<uint32_t>& pieces)
{
  if (pieces.empty()) {
    return parts;
  }

  Parts result;
  for (const Part& part : parts) {
    if (std::find(pieces.begin(), pieces.end(), part.piece) == pieces.end()) {
      result.push_back(part);
    }
  }
  return result;
}


// Offers an agent to everybody in turn, until nothing is left there. Gives
// the winners.
std::vector<Competition::Node*> offerAgent(
    uint32_t agent,
    bool guarantees,
    int64_t nowMs,
    const Competition& competition,
    Cluster* cluster,
    std::vector<Offer>* offers)
{
  std::vector<uint32_t> sharedOffered;
  std::vector<Competition::Node*> winners;

  competition.visit([&](Competition::Node* node) {
    const Pair pair{node->framework, node->role, agent};

    if ((guarantees && !cluster->sums.isMissing(node->role)) ||
        admitPair(*cluster, pair) != PASS) {
      return true;
    }

    const Parts mine = without(pool(*cluster, pair), sharedOffered);
    if (guarantees && !isNeeded(*cluster, node->role, mine)) {
      return true;
    }

    const Verdict verdict = finish(*cluster, pair, mine, nowMs);
    if (verdict.reason != wire::OUTCOME_REASON_OFFERED) {
      return true;
    }

    for (const Part& part : verdict.given) {
      if (cluster->pieces.traits(part.piece).shared) {
        sharedOffered.push_back(part.piece);
      }
    }

    // What is held must be offered, so there has to be room for it.
    Offer offer{pair.framework, pair.role, agent, verdict.given};
    offers->emplace_back();
    cluster->books.hold(agent, pair.framework, pair.role, verdict.given);
    offers->back() = std::move(offer);
    winners.push_back(node);
    return hasAnything(*cluster, agent);
  });

  return winners;
}

} // namespace {


void Fallback::begin(
    const Cluster& cluster,
    bool all,
    const std::vector<uint32_t>& some,
    int64_t clockMs)
{
  if (!running) {
    agents.clear();
  }

  if (all) {
    agents.clear();
    for (uint32_t agent = 0; agent < cluster.agents.end(); ++agent) {
      agents.push_back(agent);
    }
  } else {
    agents.insert(agents.end(), some.begin(), some.end());
    std::sort(agents.begin(), agents.end());
    agents.erase(std::unique(agents.begin(), agents.end()), agents.end());
  }

  std::shuffle(agents.begin(), agents.end(), random);
  running = true;
  guarantees = cluster.sums.hasQuotas();
  asOfMs = clockMs;
  next = 0;
}


void Fallback::slice(Cluster* cluster, std::vector<Offer>* offers)
{
  Competition competition(*cluster, served);
  size_t left = cluster->options.sliceAgents;

  for (; left > 0 && next < agents.size() && !competition.empty(); ++next) {
    const uint32_t agent = agents[next];
    if (admitAgent(*cluster, agent) != PASS || !hasAnything(*cluster, agent)) {
      continue;
    }

    --left;
    const std::vector<Competition::Node*> winners =
        offerAgent(agent, guarantees, asOfMs, competition, cluster, offers);

    for (Competition::Node* node : winners) {
      ++served[clientKey(0, node->role)];
      ++served[clientKey(node->framework, node->role)];
      competition.update(node);
    }
  }

  if (next < agents.size() && !competition.empty()) {
    return;
  }

  running = guarantees;
  guarantees = false;
  next = 0;
}


void Fallback::forget(uint32_t framework)
{
  for (auto entry = served.begin(); entry != served.end();) {
    entry = entry->first >> 32 == framework ? served.erase(entry)
                                            : std::next(entry);
  }
}


// Frameworks leave a role by an update, too, so all of them may be in it.
void Fallback::forgetRoles(const std::vector<uint32_t>& roles)
{
  const std::unordered_set<uint32_t> gone(roles.begin(), roles.end());

  for (auto entry = served.begin(); entry != served.end();) {
    const uint32_t role = static_cast<uint32_t>(entry->first);
    entry = gone.count(role) > 0 ? served.erase(entry) : std::next(entry);
  }
}

} // namespace brain {
} // namespace allocator {
