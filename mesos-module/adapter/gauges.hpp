#ifndef __ALLOCATOR_ADAPTER_GAUGES_HPP__
#define __ALLOCATOR_ADAPTER_GAUGES_HPP__

#include <functional>
#include <memory>
#include <string>

#include <process/metrics/pull_gauge.hpp>
#include <process/pid.hpp>

namespace allocator {
namespace adapter {

// Gauges that the actor reads. One dispatch answers all gauges of a scrape: a
// dispatch for each would fill the actor's queue and falsify the metric of the
// queue's length.
class Gauges
{
public:
  using Read = std::function<double()>;

  explicit Gauges(const process::UPID& actor);

  // `read` runs in the actor.
  process::metrics::PullGauge make(const std::string& name, const Read& read);

private:
  struct Waiting;

  const process::UPID actor;
  const std::shared_ptr<Waiting> waiting;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_GAUGES_HPP__
