#ifndef __ALLOCATOR_ADAPTER_BUILTIN_METRICS_HPP__
#define __ALLOCATOR_ADAPTER_BUILTIN_METRICS_HPP__

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <mesos/quota/quota.hpp>

#include <process/metrics/counter.hpp>
#include <process/metrics/pull_gauge.hpp>
#include <process/metrics/push_gauge.hpp>
#include <process/metrics/timer.hpp>

#include <stout/duration.hpp>

#include "adapter/consumption.hpp"
#include "adapter/gauges.hpp"

#include "brain/books/cluster.hpp"

namespace allocator {
namespace adapter {

// The metrics of Mesos's own allocator under `allocator/mesos/`, with the same
// names and meaning, so that dashboards and alerts keep working. An allocation
// run in these metrics is a cycle: from the request to the sidecar until its
// answer is judged, or a cycle of the fallback.
//
// The actor reads all values on every scrape, so it keeps running sums. Amounts
// are scalars by name, including reserved and revocable
// ones. A role's share is shown while a framework subscribes to the role; the
// number of its filters also while the role or a descendant has reserved
// resources, a quota or a weight.
class BuiltinMetrics
{
public:
  // `dispatches`: the length of the actor's queue.
  BuiltinMetrics(
      Gauges* gauges,
      const std::function<double()>& dispatches,
      const brain::Cluster& cluster);
  ~BuiltinMetrics();

  BuiltinMetrics(const BuiltinMetrics&) = delete;
  BuiltinMetrics& operator=(const BuiltinMetrics&) = delete;

  // Records that a framework changes its roles from `before` to `roles`, which
  // is empty if the framework is removed.
  void subscribe(
      const std::set<std::string>& before,
      const std::set<std::string>& roles);

  // Sets for all roles of a framework whether they are suppressed. `framework`
  // is the prefix of its metrics.
  void setSuppressed(
      const std::string& framework,
      const std::map<std::string, bool>& suppressed);

  // Sets it for some of the framework's roles.
  void updateSuppressed(
      const std::string& framework,
      const std::map<std::string, bool>& suppressed);

  // Call when the framework is removed. The metrics of the `most` frameworks
  // removed last remain unchanged.
  void complete(const std::string& framework, size_t most);

  // An empty quota removes it.
  void setQuota(const std::string& role, const mesos::Quota& quota);

  void setWeight(const std::string& role, double weight);

  // Call when a run is requested, begins, and ends. Overlapping runs count as
  // one, from the first begin to the last end.
  void runDue();
  void runBegins();
  void runEnds();

  Consumption consumption;

private:
  using Pull = process::metrics::PullGauge;
  using Push = process::metrics::PushGauge;

  // The metric for a role's filters, and the number of reasons to show it, one
  // of which is each child whose metric is shown.
  struct Filters
  {
    size_t reasons;
    std::string parent;
    Pull gauge;
  };

  Pull pull(const std::string& name, const std::function<double()>& read);
  void remove(std::vector<Pull>* gauges);
  void know(const std::string& role);
  void ignore(const std::string& role);
  void removeSuppressed(const std::string& framework);

  Gauges* const gauges;
  const brain::Cluster& books;

  std::vector<Pull> cluster;

  // By role: its number of subscribers, its share, its filters.
  std::map<std::string, size_t> subscribers;
  std::map<std::string, Pull> shares;
  std::map<std::string, Filters> filters;
  std::set<std::string> weighted;

  // By role with a quota.
  std::map<std::string, std::vector<Push>> quotas;
  std::map<std::string, std::vector<Pull>> used;

  // By framework and role; `completed`: removed frameworks, oldest first.
  std::map<std::string, std::map<std::string, Push>> suppressed;
  std::list<std::string> completed;

  process::metrics::Counter runs;
  process::metrics::Timer<Milliseconds> run;
  process::metrics::Timer<Milliseconds> latency;

  bool due = false;
  bool running = false;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_BUILTIN_METRICS_HPP__
