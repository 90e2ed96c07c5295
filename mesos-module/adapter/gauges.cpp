#include "adapter/gauges.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include <process/defer.hpp>
#include <process/future.hpp>
#include <process/metrics/metrics.hpp>

#include "adapter/attempt.hpp"

using std::string;

using process::Future;
using process::Promise;

namespace allocator {
namespace adapter {

// Reads that other threads have requested and the actor has not answered yet.
struct Gauges::Waiting
{
  using Asked = std::pair<Read, std::shared_ptr<Promise<double>>>;

  std::mutex mutex;
  std::vector<Asked> asked;
  bool dispatched = false;

  void answerAll()
  {
    std::vector<Asked> all;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      all.swap(asked);
      dispatched = false;
    }

    for (const Asked& each : all) {
      each.second->associate(answer<double>(each.first));
    }
  }
};


Gauges::Gauges(const process::UPID& _actor)
  : actor(_actor), waiting(new Waiting())
{
}


process::metrics::PullGauge Gauges::make(const string& name, const Read& read)
{
  const std::shared_ptr<Waiting> queue = waiting;
  const std::function<void()> wake = process::defer(actor, [queue]() {
    attempt("read its metrics", [&]() { queue->answerAll(); });
  });

  process::metrics::PullGauge gauge(name, [=]() -> Future<double> {
    const auto promise = std::make_shared<Promise<double>>();
    const std::lock_guard<std::mutex> lock(queue->mutex);

    queue->asked.emplace_back(read, promise);
    if (!queue->dispatched) {
      wake();
      queue->dispatched = true;
    }
    return promise->future();
  });

  process::metrics::add(gauge);
  return gauge;
}

} // namespace adapter {
} // namespace allocator {
