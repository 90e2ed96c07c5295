#include <algorithm>

#include <process/event.hpp>

#include "adapter/builtin_metrics.hpp"
#include "adapter/process.hpp"

using std::string;

namespace allocator {
namespace adapter {
namespace {

double scalarOf(
    const brain::Cluster& cluster,
    const brain::Amounts& amounts,
    const string& name)
{
  for (const auto& entry : amounts) {
    if (cluster.pieces.names.name(entry.first) == name) {
      return entry.second / 1000.0;
    }
  }

  return 0.0;
}


// The dominant share of a role by itself, as Mesos's sorter has it.
double shareOf(const brain::Cluster& cluster, const string& role)
{
  const brain::Amounts& held = cluster.sums.atRole(cluster.roles.find(role));
  const auto& excluded = cluster.options.excludedNames;
  double share = 0;

  for (const auto& total : cluster.sums.total()) {
    if (total.second > 0 &&
        excluded.count(cluster.pieces.names.name(total.first)) == 0) {
      share = std::max(
          share,
          double(brain::amountOf(held, total.first)) / double(total.second));
    }
  }

  auto weight = cluster.weights.find(role);
  return weight == cluster.weights.end() ? share : share / weight->second;
}

} // namespace {


void AllocatorProcess::startBuiltinMetrics()
{
  const brain::Cluster* cluster = &brain.cluster();

  BuiltinReadings readings;
  readings.dispatches = [this]() {
    return double(eventCount<process::DispatchEvent>());
  };
  readings.total = [=](const string& name) {
    return scalarOf(*cluster, cluster->sums.total(), name);
  };
  readings.held = [=](const string& name) {
    return scalarOf(*cluster, cluster->sums.held(), name);
  };
  readings.heldByRole = [=](const string& role, const string& name) {
    const uint32_t number = cluster->roles.find(role);
    return scalarOf(*cluster, cluster->sums.atRole(number), name);
  };
  readings.consumed = [=](const string& role, const string& name) {
    const uint32_t number = cluster->roles.find(role);
    return scalarOf(*cluster, cluster->sums.consumed(number), name);
  };
  readings.share = [=](const string& role) { return shareOf(*cluster, role); };
  readings.filters = [=](const string& role) {
    return double(cluster->filters.countOf(cluster->roles.find(role)));
  };

  builtin.reset(new BuiltinMetrics(self(), readings));
}

} // namespace adapter {
} // namespace allocator {
