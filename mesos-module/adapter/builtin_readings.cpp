#include <algorithm>

#include <process/event.hpp>

#include "adapter/builtin_metrics.hpp"
#include "adapter/process.hpp"

using std::string;

namespace allocator {
namespace adapter {
namespace {

double scalarOf(const Quantities& quantities, const string& name)
{
  auto found = quantities.find(name);
  return found == quantities.end() ? 0.0 : found->second / 1000.0;
}


double scalarOf(
    const std::map<string, Quantities>& roles,
    const string& role,
    const string& name)
{
  auto found = roles.find(role);
  return found == roles.end() ? 0.0 : scalarOf(found->second, name);
}


// The dominant share of a role by itself, as Mesos's sorter has it.
double shareOf(const Cluster& state, const string& role)
{
  const QuotaUsage::Sums& sums = state.usage.of(state.ledger);
  const Option<std::set<string>>& excluded =
      state.options.fairnessExcludeResourceNames;
  double share = 0;

  for (const auto& total : sums.total) {
    if (total.second > 0 &&
        (excluded.isNone() || excluded->count(total.first) == 0)) {
      const double held = scalarOf(sums.heldByRole, role, total.first);
      share = std::max(share, held / (total.second / 1000.0));
    }
  }

  auto weight = state.weights.find(role);
  return weight == state.weights.end() ? share : share / weight->second;
}

} // namespace {


void AllocatorProcess::startBuiltinMetrics()
{
  const auto sums = [this]() -> const QuotaUsage::Sums& {
    return state.usage.of(state.ledger);
  };

  BuiltinReadings readings;
  readings.dispatches = [this]() {
    return double(eventCount<process::DispatchEvent>());
  };
  readings.total = [=](const string& name) {
    return scalarOf(sums().total, name);
  };
  readings.held = [=](const string& name) {
    double held = 0;
    for (const auto& role : sums().heldByRole) {
      held += scalarOf(role.second, name);
    }
    return held;
  };
  readings.heldByRole = [=](const string& role, const string& name) {
    return scalarOf(sums().heldByRole, role, name);
  };
  readings.consumed = [=](const string& role, const string& name) {
    return scalarOf(sums().consumed, role, name);
  };
  readings.share = [this](const string& role) { return shareOf(state, role); };
  readings.filters = [this](const string& role) {
    return double(state.filters.countOf(role));
  };

  builtin.reset(new BuiltinMetrics(self(), readings));
}

} // namespace adapter {
} // namespace allocator {
