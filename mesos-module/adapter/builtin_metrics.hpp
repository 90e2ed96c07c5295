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

// What Mesos's own allocator shows under `allocator/mesos/`: the same names
// with the same meaning, so that dashboards and alerts go on as they are. A
// run is a cycle, from asking the sidecar until its answer is judged, or the
// module's own.
//
// The values are asked for in the actor, one by one, whenever somebody looks; so
// each is of sums that are kept. Amounts are those of scalars by their name,
// reserved and revocable ones among them. A role is shown while a framework
// subscribes to it.
class BuiltinMetrics
{
public:
  // `dispatches` are those that wait in the actor's queue.
  BuiltinMetrics(
      const process::UPID& actor,
      const std::function<double()>& dispatches,
      const brain::Cluster& cluster);
  ~BuiltinMetrics();

  BuiltinMetrics(const BuiltinMetrics&) = delete;
  BuiltinMetrics& operator=(const BuiltinMetrics&) = delete;

  // A framework subscribes to roles, with those it had before; or goes.
  void subscribe(
      const std::set<std::string>& before,
      const std::set<std::string>& roles);

  // In which of its roles a framework does not want offers; `framework` is
  // what the names of its metrics begin with. Without roles it is gone.
  void setSuppressed(
      const std::string& framework,
      const std::map<std::string, bool>& suppressed);

  // Of some of its roles.
  void updateSuppressed(
      const std::string& framework,
      const std::map<std::string, bool>& suppressed);

  // An empty quota is none.
  void setQuota(const std::string& role, const mesos::Quota& quota);

  // A run is asked for, begins, and ends. Of several that overlap the first
  // begin and the last end count.
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

  // Of roles: how many frameworks subscribe, and what is shown of them.
  std::map<std::string, size_t> subscribers;
  std::map<std::string, std::vector<Pull>> byRole;

  // Of roles with a quota.
  std::map<std::string, std::vector<Push>> quotas;
  std::map<std::string, std::vector<Pull>> used;

  // Of frameworks, by role.
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
