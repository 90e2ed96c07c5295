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

// A cluster to play.
struct Size
{
  size_t agents = 1000;
  size_t frameworks = 100;
  size_t roles = 1;
};


// Seconds that a part of the play took: until it was done, and of the processor
// in all threads of this program and of its sidecar.
struct Time
{
  double elapsed = 0;
  double spent = 0;
};


struct Times
{
  Time add;     // From the first framework to the last first offer.
  Time decline; // Decline everything, until that is booked.
  Time reoffer; // Decline everything, until all is offered again.
  Time refuse;  // The same, with a filter each.
  Time events;  // An accept and its end for each agent, booked.
  size_t eventCount = 0;
};


// What all of this program has spent since it began, by thread: whoever calls
// the allocator; the one that all actors run in, but for what the master
// itself does there; the others, gRPC's.
struct Spent
{
  Price caller;
  Price actor;
  int64_t othersNs = 0;
};


// Plays the master through `Allocator*`: it adds agents and frameworks,
// takes offers by the callback, and gives back what it was offered.
//
// Offers come to an actor as in a real master. All methods are called
// from one thread outside, and wait.
class Master
{
public:
  // The allocator is initialized and told that this master leads.
  Master(mesos::allocator::Allocator* allocator, const Size& size);
  ~Master();

  // Adds everything, and waits until each agent was offered. False where
  // that takes longer than a minute.
  bool populate();

  void addFrameworks();
  void addAgents();

  // Between them no offers are made.
  void pause();
  void resume();

  // Gives everything back, asks for a cycle, and waits as above.
  bool reoffer(const Option<mesos::Filters>& filters);

  // Gives everything back and waits until that is booked, only.
  void decline(const Option<mesos::Filters>& filters);

  // Asks for a cycle, and waits as above.
  bool offerAll();

  // Has each offer accepted and used as a whole. What is used is given back
  // by `end`. Gives the number of calls.
  size_t accept();
  size_t end();

  // Waits until the allocator has done all that it was told.
  void barrier();

  // Needs a libprocess of one worker thread.
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


// Waits until the module's metric has the value; false after a minute.
bool waitForMetric(const std::string& name, double value);


FrameworkID frameworkIdOf(size_t number);
SlaveID agentIdOf(size_t number);

} // namespace driver {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_DRIVER_MASTER_HPP__
