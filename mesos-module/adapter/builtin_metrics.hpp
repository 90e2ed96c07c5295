#ifndef __ALLOCATOR_ADAPTER_BUILTIN_METRICS_HPP__
#define __ALLOCATOR_ADAPTER_BUILTIN_METRICS_HPP__

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <mesos/quota/quota.hpp>

#include <process/metrics/counter.hpp>
#include <process/metrics/pull_gauge.hpp>
#include <process/metrics/push_gauge.hpp>
#include <process/metrics/timer.hpp>

#include <process/pid.hpp>

#include <stout/duration.hpp>

#include "brain/books/cluster.hpp"

namespace allocator {
namespace adapter {

// The metrics of Mesos's own allocator under `allocator/mesos/`, with the same
// names and meaning, so that dashboards and alerts keep working. A run is a
// cycle: from asking the sidecar until its answer is judged, or the module's
// own.
//
// The actor reads each value on every scrape, so each comes from maintained
// sums. Amounts are scalars by name, reserved and revocable ones included. A
// role is shown while a framework subscribes to it.
class BuiltinMetrics
{
public:
  // `dispatches`: the length of the actor's queue.
  BuiltinMetrics(
      const process::UPID& actor,
      const std::function<double()>& dispatches,
      const brain::Cluster& cluster);
  ~BuiltinMetrics();

  BuiltinMetrics(const BuiltinMetrics&) = delete;
  BuiltinMetrics& operator=(const BuiltinMetrics&) = delete;

  // A framework changes its roles from `before` to `roles`; empty `roles` when
  // it is removed.
  void subscribe(
      const std::set<std::string>& before,
      const std::set<std::string>& roles);

  // Whether a framework suppresses offers, for all its roles; empty when it is
  // removed. `framework` is the prefix of its metrics.
  void setSuppressed(
      const std::string& framework,
      const std::map<std::string, bool>& suppressed);

  // The same for some of its roles.
  void updateSuppressed(
      const std::string& framework,
      const std::map<std::string, bool>& suppressed);

  // An empty quota removes it.
  void setQuota(const std::string& role, const mesos::Quota& quota);

  // A run is asked for, begins, and ends. Of overlapping runs, the first begin
  // and the last end count.
  void runDue();
  void runBegins();
  void runEnds();

private:
  using Pull = process::metrics::PullGauge;
  using Push = process::metrics::PushGauge;

  Pull pull(const std::string& name, const std::function<double()>& read);
  void remove(std::vector<Pull>* gauges);

  const process::UPID actor;
  const brain::Cluster& books;

  std::vector<Pull> cluster;

  // By role: its number of subscribers, and its gauges.
  std::map<std::string, size_t> subscribers;
  std::map<std::string, std::vector<Pull>> byRole;

  // By role with a quota.
  std::map<std::string, std::vector<Push>> quotas;
  std::map<std::string, std::vector<Pull>> used;

  // By framework and role.
  std::map<std::string, std::map<std::string, Push>> suppressed;

  process::metrics::Counter runs;
  process::metrics::Timer<Milliseconds> run;
  process::metrics::Timer<Milliseconds> latency;

  bool due = false;
  bool running = false;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_BUILTIN_METRICS_HPP__
