#include "adapter/metrics.hpp"

#include <process/metrics/metrics.hpp>

#include "adapter/process.hpp"

using std::string;

namespace allocator {
namespace adapter {

Metrics::Metrics(AllocatorProcess& process)
{
  const AllocatorProcess* p = &process;

  for (const auto& stat : session::published()) {
    const auto value = stat.value;
    add(&process.gauges, stat.metric, [=]() {
      return p->keeper == nullptr ? 0.0 : value(p->keeper->stats());
    });
  }

  for (const auto& stat : brain::published()) {
    const auto value = stat.value;
    add(&process.gauges, stat.metric, [=]() {
      return value(p->brain.stats());
    });
  }
}


Metrics::~Metrics()
{
  for (const process::metrics::PullGauge& gauge : gauges) {
    process::metrics::remove(gauge);
  }
}


void Metrics::add(Gauges* all, const string& name, const Gauges::Read& read)
{
  if (!name.empty()) {
    gauges.push_back(all->make("allocator/sidecar/" + name, read));
  }
}

} // namespace adapter {
} // namespace allocator {
