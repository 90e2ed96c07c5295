#include "brain/deciding/fallback.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

namespace allocator {
namespace brain {
namespace {

// Cost of building the order, per node, in units of work.
constexpr size_t NODE_AS_PARTS = 8;


// Whether any of the parts would reduce the role's unmet guarantee.
bool isNeeded(const Cluster& cluster, uint32_t role, const Parts& parts)
{
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
    const ResourceClasses::Row& resourceClass =
        cluster.classes.row(part.resourceClass);
    return resourceClass.traits.quotaCounts() &&
        cluster.sums.missing(role, resourceClass.name) > 0;
  });
}


uint64_t volumeKey(uint32_t agent, uint32_t resourceClass)
{
  return (uint64_t(agent) << 32) | resourceClass;
}


// Leaves out shared volumes of the agent that have been offered already.
Parts without(
    Parts parts,
    uint32_t agent,
    const std::unordered_set<uint64_t>& offered)
{
  if (offered.empty()) {
    return parts;
  }

  Parts result;
  for (const Part& part : parts) {
    if (offered.count(volumeKey(agent, part.resourceClass)) == 0) {
      result.push_back(part);
    }
  }
  return result;
}

} // namespace {


void Fallback::begin(
    const Cluster& cluster,
    bool all,
    const std::vector<uint32_t>& some,
    int64_t clockMs)
{
  wantedAll = (wanted && wantedAll) || all;
  wantedMs = clockMs;

  if (!wanted || wantedAll) {
    wantedAgents.clear();
  }

  if (!wantedAll) {
    wantedAgents.insert(wantedAgents.end(), some.begin(), some.end());
    std::sort(wantedAgents.begin(), wantedAgents.end());
    wantedAgents.erase(
        std::unique(wantedAgents.begin(), wantedAgents.end()),
        wantedAgents.end());
  }

  wanted = true;
  if (!running) {
    start(cluster);
  }
}


void Fallback::start(const Cluster& cluster)
{
  agents.swap(wantedAgents);
  wantedAgents.clear();

  if (wantedAll) {
    agents.clear();
    for (uint32_t agent = 0; agent < cluster.agents.end(); ++agent) {
      agents.push_back(agent);
    }
  }

  updateTurns(cluster);
  std::shuffle(agents.begin(), agents.end(), random);
  running = true;
  wanted = wantedAll = false;
  guarantees = cluster.sums.hasQuotas();
  asOfMs = wantedMs;
  next = 0;
  askedBefore.clear();
  sharedOffered.clear();
}


void Fallback::slice(Cluster* cluster, std::vector<Offer>* offers)
{
  Competition competition(*cluster, turns);
  // Each slice rebuilds the order, so make slices large enough to be worth
  // that.
  const size_t most =
      std::max(cluster->options.sliceParts, NODE_AS_PARTS * competition.size());
  size_t agentsLeft = cluster->options.sliceAgents;
  size_t work = 0;

  while (next < agents.size() && !competition.empty()) {
    if (agentsLeft == 0 || work >= most) {
      return;
    }

    const uint32_t agent = agents[next];
    const bool admitted = admitAgent(*cluster, agent) == PASS;
    const Agent* record = cluster->agents.find(agent);
    const bool any = admitted && cluster->books.hasFree(*record);

    if (any && !offerAgent(cluster, &competition, most, &work, offers)) {
      return;
    }

    work += 1 + (admitted ? record->resources.size() / AMOUNTS_AS_ONE : 0);
    agentsLeft -= any ? 1 : 0;
    ++next;
    askedBefore.clear();
  }

  endRound(*cluster);
}


void Fallback::endRound(const Cluster& cluster)
{
  running = guarantees;
  guarantees = false;
  next = 0;
  askedBefore.clear();

  if (!running && wanted) {
    start(cluster);
  }
}


// Offers the current agent to clients in order, until nothing is left (true) or
// the slice ends (false).
bool Fallback::offerAgent(
    Cluster* cluster,
    Competition* competition,
    size_t most,
    size_t* work,
    std::vector<Offer>* offers)
{
  const uint32_t agent = agents[next];
  const Agent& record = *cluster->agents.find(agent);
  std::vector<Competition::Node*> winners;
  std::vector<uint64_t> asked;
  bool whole = true;

  competition->visit([&](Competition::Node* node) {
    const uint64_t key = clientKey(node->framework, node->role);

    // Try at least one client per slice.
    if (!askedBefore.empty() && askedBefore.count(key) > 0) {
      return true;
    }
    if (*work >= most && !asked.empty()) {
      whole = false;
      return false;
    }

    asked.push_back(key);
    *work += 1 + record.resources.size();

    if (!offerTo(*node, agent, cluster, work, offers)) {
      return true;
    }

    winners.push_back(node);
    return cluster->books.hasFree(record);
  });

  if (!whole) {
    askedBefore.insert(asked.begin(), asked.end());
  }

  for (Competition::Node* node : winners) {
    takeTurn(*node);
    competition->update(node);
  }

  return whole;
}


bool Fallback::offerTo(
    const Competition::Node& node,
    uint32_t agent,
    Cluster* cluster,
    size_t* work,
    std::vector<Offer>* offers)
{
  const Pair pair{node.framework, node.role, agent};

  if ((guarantees && !cluster->sums.isMissing(node.role)) ||
      admitPair(*cluster, pair) != PASS) {
    return false;
  }

  Parts mine = without(pool(*cluster, pair), agent, sharedOffered);
  if (guarantees && !isNeeded(*cluster, node.role, mine)) {
    return false;
  }

  Admission admission =
      applyQuotaAndFilters(*cluster, pair, std::move(mine), asOfMs);
  *work += admission.work;
  if (admission.reason != wire::OUTCOME_REASON_OFFERED) {
    return false;
  }

  for (const Part& part : admission.given) {
    if (cluster->classes.traits(part.resourceClass).shared) {
      sharedOffered.insert(volumeKey(agent, part.resourceClass));
    }
  }

  // Append first, because appending may throw: resources that are booked as
  // held must also be offered.
  offers->push_back(
      Offer{pair.framework, pair.role, agent, std::move(admission.given)});

  try {
    cluster->books.hold(agent, pair.framework, pair.role, offers->back().parts);
  } catch (...) {
    offers->pop_back();
    throw;
  }

  return true;
}


// Records the turn of a winner and its ancestors. The framework's other roles
// keep their places until the next cycle.
void Fallback::takeTurn(const Competition::Node& winner)
{
  ++turns.now;
  served[winner.framework] = turns.now;

  for (const Competition::Node* node = &winner; node->parent != nullptr;
       node = node->parent) {
    turns.last[clientKey(node->framework, node->role)] = turns.now;
  }
}


// Moves frameworks that were served in the last cycle back in all their roles.
// Appends new frameworks at the end.
void Fallback::updateTurns(const Cluster& cluster)
{
  for (const auto& entry : served) {
    turns.last[clientKey(entry.first, 0)] = entry.second;
  }
  served.clear();

  for (uint32_t number = 0; number < cluster.frameworks.end(); ++number) {
    if (cluster.frameworks.find(number) != nullptr) {
      turns.last.emplace(clientKey(number, 0), turns.now);
    }
  }
}


void Fallback::forget(uint32_t framework)
{
  served.erase(framework);

  for (auto entry = turns.last.begin(); entry != turns.last.end();) {
    entry = entry->first >> 32 == framework ? turns.last.erase(entry)
                                            : std::next(entry);
  }
}


// Forgets the turns in these roles, also of frameworks that left them by an
// update.
void Fallback::forgetRoles(const std::vector<uint32_t>& roles)
{
  const std::unordered_set<uint32_t> gone(roles.begin(), roles.end());

  for (auto entry = turns.last.begin(); entry != turns.last.end();) {
    const uint32_t role = static_cast<uint32_t>(entry->first);
    entry = gone.count(role) > 0 ? turns.last.erase(entry) : std::next(entry);
  }
}

} // namespace brain {
} // namespace allocator {
