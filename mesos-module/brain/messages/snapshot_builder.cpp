#include "brain/messages/snapshot_builder.hpp"

#include <algorithm>

#include "brain/messages/event_coalescer.hpp"
#include "brain/user_input/text.hpp"

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
      cluster->kinds.toAmounts(Books::total(agent), cluster->classes),
      result.mutable_capacity());

  sendOverflow(agent, *cluster, result.mutable_set_aside());

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

  sendOverflow(framework, *cluster, result.mutable_set_aside());

  fit(cluster->messageBytesMax, &result);
  return result;
}


void sendOverflow(const Agent& agent, const Cluster& cluster, Aside::Rows* rows)
{
  if (!cluster.kinds.hasOverflow() || !cluster.kinds.isOver(agent.reporter)) {
    return;
  }

  Aside aside;
  for (const AgentResource& resource : agent.resources) {
    const ResourceClasses::Row& resourceClass =
        cluster.classes.row(resource.resourceClass);
    if (resourceClass.reporter == agent.reporter &&
        cluster.kinds.isOverflow(resource.resourceClass)) {
      aside.add(
          "resources",
          wire::SET_ASIDE_REASON_TOO_MANY,
          "'" + toShown(resourceClass.traits.name, ASIDE_QUOTE_BYTES_MAX) +
              "' is only offered together with others, as a whole");
    }
  }
  append(aside, rows);
}


void sendOverflow(
    const Framework& framework,
    const Cluster& cluster,
    Aside::Rows* rows)
{
  if (cluster.kinds.hasOverflow() && cluster.kinds.isOver(framework.reporter)) {
    Aside aside;
    aside.add(
        "reservations",
        wire::SET_ASIDE_REASON_TOO_MANY,
        "some are only offered together with others, as a whole");
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


void SnapshotBuilder::begin(
    Cluster* cluster,
    size_t bytesMax,
    uint64_t revision)
{
  running = true;
  chunkBytesMax = bytesMax;
  revision_ = revision;
  cluster->frameworks.pin();
  cluster->agents.pin();
  nextFramework = nextAgent = nextExclusion = 0;
  settings = wire::SnapshotChunk();
  paused = cluster->recovering;

  for (const auto& entry : cluster->weights) {
    wire::Weight* weight = settings.add_weights();
    weight->set_role(toText(entry.first));
    weight->set_weight(entry.second);
  }

  for (const auto& entry : cluster->quotas) {
    *settings.add_quotas() = toWire(entry.first, entry.second);
  }

  if (cluster->restricted) {
    *settings.mutable_whitelist() = toWire(*cluster);
  }
}


void SnapshotBuilder::stop(Cluster* cluster)
{
  running = false;
  cluster->frameworks.unpin();
  cluster->agents.unpin();
}


// Writes an agent with its holdings and filters. Returns its share of the
// slice's work: its filters, plus one.
size_t SnapshotBuilder::buildAgent(
    uint32_t number,
    Cluster* cluster,
    int64_t nowMs,
    session::SnapshotWriter* writer)
{
  const Agent& agent = *cluster->agents.findPinned(number);
  *writer->nouns()->add_agents() = toWire(agent, number, cluster);

  for (const Allocation& allocation : agent.allocations) {
    writer->addHolding(
        Place{
            allocation.framework,
            cluster->roles.holdHandle(allocation.role),
            number},
        cluster->kinds.toAmounts(allocation.parts, cluster->classes));
  }

  for (const OfferFilter& filter : agent.filters) {
    const Framework* framework =
        cluster->frameworks.findPinned(filter.framework);

    if (framework != nullptr && framework->roles.count(filter.role) > 0 &&
        cluster->filters.lasts(filter, nowMs)) {
      writer->addFilter(
          Place{filter.framework, cluster->roles.handle(filter.role), number},
          cluster->kinds.toAmounts(*filter.parts, cluster->classes),
          filter.expiresMs);
    }
  }

  return agent.filters.size() + 1;
}


size_t SnapshotBuilder::buildExclusions(
    uint32_t number,
    Cluster* cluster,
    session::SnapshotWriter* writer)
{
  const Framework& framework = *cluster->frameworks.findPinned(number);
  size_t rows = 0;

  for (const auto& role : framework.excluded) {
    for (uint32_t agent = 0; agent < role.second.size(); ++agent) {
      if (role.second[agent]) {
        writer->addExclusion(
            Place{number, cluster->roles.handle(role.first), agent});
        ++rows;
      }
    }
  }

  return rows;
}


// Writes frameworks, agents, then exclusions for one slice; returns whether it
// is finished.
bool SnapshotBuilder::build(
    Cluster* cluster,
    int64_t nowMs,
    session::SnapshotWriter* writer)
{
  const uint32_t frameworks = cluster->frameworks.endPinned();
  size_t agentsLeft = cluster->options.sliceAgents;
  size_t rowsLeft = cluster->options.sliceFilters;

  for (; nextFramework < frameworks; ++nextFramework) {
    if (agentsLeft == 0) {
      return false;
    }
    const Framework* framework = cluster->frameworks.findPinned(nextFramework);
    if (framework != nullptr) {
      *writer->nouns()->add_frameworks() =
          toWire(*framework, nextFramework, cluster);
      --agentsLeft;
    }
  }

  for (; nextAgent < cluster->agents.endPinned(); ++nextAgent) {
    if (agentsLeft == 0 || rowsLeft == 0) {
      cluster->agents.unpinBelow(nextAgent);
      return false;
    }
    if (cluster->agents.findPinned(nextAgent) != nullptr) {
      const size_t rows = buildAgent(nextAgent, cluster, nowMs, writer);
      rowsLeft -= std::min(rows, rowsLeft);
      --agentsLeft;
    }
  }

  cluster->agents.unpinBelow(nextAgent);

  for (; nextExclusion < frameworks; ++nextExclusion) {
    if (rowsLeft == 0) {
      return false;
    }
    if (cluster->frameworks.findPinned(nextExclusion) != nullptr) {
      const size_t rows = buildExclusions(nextExclusion, cluster, writer);
      rowsLeft -= std::min(rows, rowsLeft);
    }
  }

  return true;
}


std::vector<wire::SnapshotChunk> SnapshotBuilder::slice(
    Cluster* cluster,
    int64_t nowMs)
{
  session::SnapshotWriter writer(chunkBytesMax);
  writer.nouns()->Swap(&settings);
  const bool last = build(cluster, nowMs, &writer);

  for (wire::Kind& kind : cluster->kinds.takeNew()) {
    writer.nouns()->add_kinds()->Swap(&kind);
  }
  for (wire::Role& role : cluster->roles.takeNew()) {
    writer.nouns()->add_roles()->Swap(&role);
  }

  if (last) {
    writer.nouns()->set_paused(paused);
    stop(cluster);
  }

  return writer.take(last);
}

} // namespace brain {
} // namespace allocator {
