#ifndef __ALLOCATOR_SESSION_PARAMETERS_HPP__
#define __ALLOCATOR_SESSION_PARAMETERS_HPP__

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "session/keeper.hpp"
#include "session/transport.hpp"

namespace allocator {
namespace session {

// The module's parameters, as `--modules` gives them.
struct Parameters
{
  TransportOptions transport;
  SessionDeadlines deadlines;

  // The module decides itself where there is no session, or where the
  // sidecar has been silent for so long. Without it nothing is offered
  // then.
  bool fallback = true;
  Duration fallbackAfter{1000};

  // Mesos's own allocator decides, with these sorters, and the module compares
  // what the sidecar would decide.
  bool shadow = false;
  std::string roleSorter = "drf";
  std::string frameworkSorter = "drf";

  // Agents whose maintenance begins later than this get inverse offers only
  // where the sidecar wants somebody to leave them.
  Duration inverseOffersWithin{3162240000000};

  // After so many intervals in a row in which a sidecar that answers left lie
  // what somebody would take, and did not say that it means to, the module
  // takes one turn; 0: never.
  size_t barrenIntervalsMax = 300;

  // So many bad decisions within ten seconds end the session; the next
  // one begins after the pause.
  size_t badDecisionsMax = 1000;
  Duration breakerPause{30000};
};


// Reads and checks all parameters, keys with their values; `error` names every
// wrong one, and is empty where none is.
Parameters parseParameters(
    const std::vector<std::pair<std::string, std::string>>& given,
    std::string* error);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_PARAMETERS_HPP__
