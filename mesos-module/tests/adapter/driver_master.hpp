#ifndef __ALLOCATOR_TESTS_DRIVER_MASTER_HPP__
#define __ALLOCATOR_TESTS_DRIVER_MASTER_HPP__

#include <memory>
#include <string>
#include <vector>

#include <process/future.hpp>
#include <process/process.hpp>

#include "adapter/types.hpp"

#include "tests/price.hpp"

namespace allocator {
namespace driver {

using namespace adapter;

// The size of the cluster.
struct Size
{
  size_t agents = 1000;
  size_t frameworks = 100;
  size_t roles = 1;
};


// Seconds per step: elapsed, and processor time of all threads of this program
// and its sidecar.
struct Time
{
  double elapsed = 0;
  double spent = 0;
};


struct Times
{
  Time add;     // Add all; ends when each agent was offered.
  Time decline; // Decline everything, until booked.
  Time reoffer; // Decline everything, until all is offered again.
  Time refuse;  // As `reoffer`, but with filters.
  Time events;  // Accept and end each offer, until booked.
  size_t eventCount = 0;
};


// Cost of this program since its start, by thread: the one that calls the
// allocator; the one that runs all actors, less the master's part; gRPC's.
struct Spent
{
  Price caller;
  Price actor;
  int64_t othersNs = 0;
};


// A master for an `Allocator*`: adds agents and frameworks, receives offers by
// the callback, and accepts or returns them.
//
// Offers arrive in an actor, as in a real master. All methods block, and are
// called from one outside thread.
class Master
{
public:
  // Initializes the allocator and makes this master the leader. Without an
  // `interval` there are only the requested cycles.
  Master(
      mesos::allocator::Allocator* allocator,
      const Size& size,
      const Option<Duration>& interval = None());
  ~Master();

  // Adds everything and waits until each agent was offered; false after a
  // minute.
  bool populate();

  void addFrameworks();
  void addAgents();

  // No offers are made between `pause` and `resume`.
  void pause();
  void resume();

  // Returns everything, requests a cycle, and waits like `populate`.
  bool reoffer(const Option<mesos::Filters>& filters);

  // Returns everything and waits only until it is booked.
  void decline(const Option<mesos::Filters>& filters);

  // Requests a cycle and waits like `populate`.
  bool offerAll();

  // Waits like `populate`, for the cycles of the interval.
  bool awaitAll();

  // Offers that were neither returned nor accepted.
  size_t held();

  // `accept` accepts each offer and uses it as a whole; `end` returns what is
  // used. Both return the number of calls.
  size_t accept();
  size_t end();

  // Waits until the allocator has handled all calls.
  void barrier();

  // Needs libprocess with one worker thread.
  Spent spent();

private:
  class Inbox;

  mesos::allocator::Allocator* const allocator;
  const Size size;
  std::unique_ptr<Inbox> inbox;
  std::vector<FrameworkID> frameworkIds;

  struct Held
  {
    FrameworkID frameworkId;
    SlaveID agentId;
    Resources resources;
  };

  std::vector<Held> used;
};


// A metric of the module, if there is one of that name.
Option<double> readMetric(const std::string& name);

// Waits until a metric of the module has the value; false after a minute.
bool waitForMetric(const std::string& name, double value);


FrameworkID frameworkIdOf(size_t number);
SlaveID agentIdOf(size_t number);

} // namespace driver {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_DRIVER_MASTER_HPP__
