#include "adapter/metrics.hpp"

#include <process/defer.hpp>
#include <process/future.hpp>
#include <process/metrics/metrics.hpp>

#include "adapter/attempt.hpp"
#include "adapter/process.hpp"

using std::string;

using process::Future;

namespace allocator {
namespace adapter {

Metrics::Metrics(AllocatorProcess& process)
{
  const AllocatorProcess* p = &process;

  for (const auto& stat : session::published()) {
    const auto value = stat.value;
    add(process, stat.metric, [=]() {
      return p->keeper == nullptr ? 0.0 : value(p->keeper->stats());
    });
  }

  for (const auto& stat : brain::published()) {
    const auto value = stat.value;
    add(process, stat.metric, [=]() { return value(p->brain.stats()); });
  }
}


Metrics::~Metrics()
{
  for (const process::metrics::PullGauge& gauge : gauges) {
    process::metrics::remove(gauge);
  }
}


void Metrics::add(AllocatorProcess& actor, const string& name, const Read& read)
{
  if (name.empty()) {
    return;
  }

  const std::function<Future<double>()> pull =
      process::defer(actor.self(), [read]() { return answer<double>(read); });

  gauges.emplace_back("allocator/sidecar/" + name, pull);
  process::metrics::add(gauges.back());
}

} // namespace adapter {
} // namespace allocator {
