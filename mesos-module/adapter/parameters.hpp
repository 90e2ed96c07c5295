#ifndef __ALLOCATOR_ADAPTER_PARAMETERS_HPP__
#define __ALLOCATOR_ADAPTER_PARAMETERS_HPP__

#include <string>

#include <mesos/mesos.hpp>

#include <stout/try.hpp>

#include "session/keeper.hpp"
#include "session/transport.hpp"

namespace allocator {
namespace adapter {

// The module's parameters, as `--modules` gives them.
struct Parameters
{
  session::TransportOptions transport;
  session::SessionDeadlines deadlines;

  // The module decides itself where there is no session, or where the
  // sidecar has been silent for so long. Without it nothing is offered
  // then.
  bool fallback = true;
  session::Duration fallbackAfter{1000};

  // Mesos's own allocator decides, with these sorters, and the module compares
  // what the sidecar would decide.
  bool shadow = false;
  std::string roleSorter = "drf";
  std::string frameworkSorter = "drf";

  // Agents whose maintenance begins later than this get inverse offers only
  // where the sidecar wants somebody to leave them.
  session::Duration inverseOffersWithin{3162240000000};

  // After so many intervals in a row in which a sidecar that answers left lie
  // what somebody would take, and did not say that it means to, the module
  // takes one turn; 0: never.
  size_t barrenIntervalsMax = 300;

  // So many bad decisions within ten seconds end the session; the next
  // one begins after the pause.
  size_t badDecisionsMax = 1000;
  session::Duration breakerPause{30000};
};


// Reads and checks all parameters; the error names every wrong one.
Try<Parameters> parseParameters(const mesos::Parameters& given);

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_PARAMETERS_HPP__
