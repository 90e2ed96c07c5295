#include "adapter/process.hpp"

#include <utility>

using std::string;
using std::vector;

using process::Future;

namespace allocator {
namespace adapter {

void AllocatorProcess::offeredBeside(
    const FrameworkID& frameworkId,
    const Offers& offers)
{
  guard([&]() {
    brain::OfferedBeside event;
    event.framework = frameworkId.value();
    event.silentMs = keeper == nullptr ? 0 : keeper->waiting().count();

    for (const auto& role : offers) {
      for (const auto& agent : role.second) {
        event.rows.push_back(brain::OfferedBeside::Row{
            agent.first.value(), role.first, objects.toParts(agent.second)});
      }
    }
    return step(event);
  });
}


// Books an operation that the deciding allocator has already carried out. If
// the operation contradicts the books, the agent's next total corrects them.
void AllocatorProcess::convertedBeside(
    const SlaveID& agentId,
    const vector<mesos::Offer::Operation>& operations)
{
  const Future<Nothing> result = updateAvailable(agentId, operations);

  if (result.isFailed()) {
    guard([&]() {
      return step(brain::Misfit{
          "An operator's operations on agent " + agentId.value() +
              " do not fit the books: " + result.failure(),
          brain::Log::Level::WARNING});
    });
  }
}

} // namespace adapter {
} // namespace allocator {
