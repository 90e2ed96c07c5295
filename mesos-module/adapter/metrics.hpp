#ifndef __ALLOCATOR_ADAPTER_METRICS_HPP__
#define __ALLOCATOR_ADAPTER_METRICS_HPP__

#include <string>
#include <vector>

#include <process/metrics/pull_gauge.hpp>

#include "adapter/gauges.hpp"

namespace allocator {
namespace adapter {

class AllocatorProcess;

// Publishes the figures of session and brain in the master's
// `/metrics/snapshot`, under `allocator/sidecar/`. The actor reads them on each
// scrape.
class Metrics
{
public:
  explicit Metrics(AllocatorProcess& process);
  ~Metrics();

private:
  void add(Gauges* all, const std::string& name, const Gauges::Read& read);

  std::vector<process::metrics::PullGauge> gauges;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_METRICS_HPP__
