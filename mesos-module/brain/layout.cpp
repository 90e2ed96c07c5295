#include "brain/layout.hpp"

#include <algorithm>
#include <utility>

#include "brain/columns.hpp"
#include "brain/text.hpp"

namespace allocator {
namespace brain {
namespace {

wire::Quantities toWire(const Quantities& quantities)
{
  wire::Quantities result;
  for (const auto& entry : quantities) {
    result.add_name(toText(entry.first));
    result.add_amount(entry.second);
  }
  return result;
}

} // namespace {


wire::Agent toWire(const Agent& agent, uint32_t number, Cluster* cluster)
{
  wire::Agent result = *agent.info;
  result.set_agent(number);
  result.set_agent_id(toText(agent.id));
  result.set_deactivated(!agent.active);
  addAmounts(
      cluster->kinds.toAmounts(Books::total(agent), cluster->pieces),
      result.mutable_capacity());

  tellRests(agent, *cluster, result.mutable_set_aside());

  if (agent.unavailability.scheduled) {
    *result.mutable_unavailability() = toWire(agent.unavailability);
  }

  fit(cluster->messageBytesMax, &result);
  return result;
}


wire::Framework
toWire(const Framework& framework, uint32_t number, Cluster* cluster)
{
  wire::Framework result = *framework.info;
  result.set_framework(number);
  result.set_framework_id(toText(framework.id));
  result.set_inactive(!framework.active);

  for (uint32_t role : framework.roles) {
    result.add_roles(cluster->roles.handle(role));
  }

  for (uint32_t role : framework.suppressed) {
    if (framework.roles.count(role) > 0) {
      result.add_suppressed_roles(cluster->roles.handle(role));
    }
  }

  for (const auto& entry : framework.minimum) {
    wire::MinimumResources* minimum = result.add_minimum();
    minimum->set_role(cluster->roles.handle(entry.first));
    for (const Quantities& each : entry.second) {
      *minimum->add_any_of() = toWire(each);
    }
  }

  tellRests(framework, *cluster, result.mutable_set_aside());

  fit(cluster->messageBytesMax, &result);
  return result;
}


void tellRests(const Agent& agent, const Cluster& cluster, Aside::Rows* rows)
{
  if (!cluster.kinds.hasRests() || !cluster.kinds.isOver(agent.teller)) {
    return;
  }

  Aside aside;
  for (const Slot& slot : agent.slots) {
    const PieceTable::Row& piece = cluster.pieces.row(slot.piece);
    if (piece.teller == agent.teller && cluster.kinds.isRest(slot.piece)) {
      aside.add(
          "resources",
          wire::SET_ASIDE_REASON_TOO_MANY,
          "'" + toShown(piece.traits.name, ASIDE_QUOTE_BYTES_MAX) +
              "' is offered along with others, as a whole");
    }
  }
  append(aside, rows);
}


void tellRests(
    const Framework& framework,
    const Cluster& cluster,
    Aside::Rows* rows)
{
  if (cluster.kinds.hasRests() && cluster.kinds.isOver(framework.teller)) {
    Aside aside;
    aside.add(
        "reservations",
        wire::SET_ASIDE_REASON_TOO_MANY,
        "some that it makes are offered along with others, as a whole");
    append(aside, rows);
  }
}


wire::Quota toWire(const std::string& role, const Cluster::Quota& quota)
{
  wire::Quota result;
  result.set_role(toText(role));
  *result.mutable_guarantees() = toWire(quota.guarantees);
  *result.mutable_limits() = toWire(quota.limits);
  return result;
}


wire::Unavailability toWire(const Unavailability& unavailability)
{
  wire::Unavailability result;
  result.set_start_ms(unavailability.startMs);
  result.set_duration_ms(unavailability.durationMs);
  return result;
}


wire::Whitelist toWire(const Cluster& cluster)
{
  wire::Whitelist result;
  result.set_restricted(cluster.restricted);
  for (const std::string& hostname : cluster.whitelist) {
    result.add_hostnames(toText(hostname));
  }
  return result;
}


void addExclusions(
    const Framework& framework,
    uint32_t number,
    Cluster* cluster,
    wire::Exclusions* exclusions)
{
  for (const auto& role : framework.excluded) {
    for (uint32_t agent = 0; agent < role.second.size(); ++agent) {
      if (role.second[agent]) {
        exclusions->add_framework(number);
        exclusions->add_role(cluster->roles.handle(role.first));
        exclusions->add_agent(agent);
        exclusions->add_excluded(true);
      }
    }
  }
}


// What a part of the snapshot says, behind kinds and roles.
struct Layout::Bodies
{
  std::vector<wire::Framework> frameworks;
  std::vector<wire::Agent> agents;
  HoldingRows holdings;
  FilterRows filters;
  wire::Exclusions exclusions;
};


void Layout::begin(Cluster* cluster, size_t bytesMax, uint64_t mark)
{
  running = true;
  paused = cluster->recovering;
  chunkBytesMax = bytesMax;
  mark_ = mark;
  cluster->frameworks.keep();
  cluster->agents.keep();
  nextFramework = nextAgent = nextExclusion = 0;
  layOutSettings(cluster);
}


void Layout::stop(Cluster* cluster)
{
  running = false;
  cluster->frameworks.stopKeeping();
  cluster->agents.stopKeeping();
  weights.clear();
  quotas.clear();
}


void Layout::layOutSettings(Cluster* cluster)
{
  weights.clear();
  for (const auto& entry : cluster->weights) {
    wire::Weight weight;
    weight.set_role(toText(entry.first));
    weight.set_weight(entry.second);
    weights.push_back(weight);
  }

  quotas.clear();
  for (const auto& entry : cluster->quotas) {
    quotas.push_back(toWire(entry.first, entry.second));
  }

  whitelist = toWire(*cluster);
}


size_t Layout::layOutAgent(
    uint32_t number,
    Cluster* cluster,
    int64_t nowMs,
    Bodies* bodies)
{
  const Agent& agent = *cluster->agents.findKept(number);
  bodies->agents.push_back(toWire(agent, number, cluster));

  for (const Holding& holding : agent.held) {
    bodies->holdings.add(
        Place{holding.framework, cluster->roles.handle(holding.role), number},
        cluster->kinds.toAmounts(holding.parts, cluster->pieces));
  }

  for (const Refusal& refusal : agent.refusals) {
    const Framework* framework =
        cluster->frameworks.findKept(refusal.framework);

    if (framework != nullptr && framework->roles.count(refusal.role) > 0 &&
        cluster->filters.lasts(refusal, nowMs)) {
      bodies->filters.add(
          Place{refusal.framework, cluster->roles.handle(refusal.role), number},
          cluster->kinds.toAmounts(*refusal.parts, cluster->pieces),
          refusal.expiresMs);
    }
  }

  return agent.refusals.size() + 1;
}


// Frameworks, then agents, then exclusions, as far as one slice goes.
bool Layout::layOut(Cluster* cluster, int64_t nowMs, Bodies* bodies)
{
  const uint32_t frameworks = cluster->frameworks.endKept();
  size_t agentsLeft = cluster->options.sliceAgents;
  size_t rowsLeft = cluster->options.sliceRefusals;

  for (; nextFramework < frameworks; ++nextFramework) {
    if (agentsLeft == 0) {
      return false;
    }
    const Framework* framework = cluster->frameworks.findKept(nextFramework);
    if (framework != nullptr) {
      bodies->frameworks.push_back(toWire(*framework, nextFramework, cluster));
      --agentsLeft;
    }
  }

  for (; nextAgent < cluster->agents.endKept(); ++nextAgent) {
    if (agentsLeft == 0 || rowsLeft == 0) {
      cluster->agents.keepFrom(nextAgent);
      return false;
    }
    if (cluster->agents.findKept(nextAgent) != nullptr) {
      const size_t rows = layOutAgent(nextAgent, cluster, nowMs, bodies);
      rowsLeft -= std::min(rows, rowsLeft);
      --agentsLeft;
    }
  }

  cluster->agents.keepFrom(nextAgent);

  for (; nextExclusion < frameworks; ++nextExclusion) {
    if (rowsLeft == 0) {
      return false;
    }
    const Framework* framework = cluster->frameworks.findKept(nextExclusion);
    if (framework != nullptr) {
      const int before = bodies->exclusions.framework_size();
      addExclusions(*framework, nextExclusion, cluster, &bodies->exclusions);
      const size_t rows = bodies->exclusions.framework_size() - before;
      rowsLeft -= std::min(rows, rowsLeft);
    }
  }

  return true;
}


// In the order in which chunks hold their fields.
void Layout::write(
    Cluster* cluster,
    Bodies* bodies,
    session::SnapshotWriter* writer)
{
  for (wire::Kind& kind : cluster->kinds.takeNew()) {
    writer->add(std::move(kind));
  }
  for (wire::Role& role : cluster->roles.takeNew()) {
    writer->add(std::move(role));
  }
  for (wire::Weight& weight : weights) {
    writer->add(std::move(weight));
  }
  for (wire::Quota& quota : quotas) {
    writer->add(std::move(quota));
  }
  for (wire::Framework& framework : bodies->frameworks) {
    writer->add(std::move(framework));
  }
  for (wire::Agent& agent : bodies->agents) {
    writer->add(std::move(agent));
  }
  for (const auto& group : bodies->holdings.groups()) {
    writer->add(group.second);
  }
  for (const auto& group : bodies->filters.groups()) {
    writer->add(group.second);
  }
  if (bodies->exclusions.framework_size() > 0) {
    writer->add(bodies->exclusions);
  }

  weights.clear();
  quotas.clear();
}


std::vector<wire::SnapshotChunk> Layout::slice(Cluster* cluster, int64_t nowMs)
{
  Bodies bodies;
  const bool last = layOut(cluster, nowMs, &bodies);

  session::SnapshotWriter writer(chunkBytesMax);
  write(cluster, &bodies, &writer);

  if (last) {
    if (whitelist.restricted()) {
      writer.add(std::move(whitelist));
    }
    writer.setPaused(paused);
    stop(cluster);
  }

  return writer.take(last);
}

} // namespace brain {
} // namespace allocator {
