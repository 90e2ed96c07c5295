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

// The module's parameters from `--modules`.
struct Parameters
{
  TransportOptions transport;
  SessionDeadlines deadlines;

  // Whether the module decides while there is no session, or once the sidecar
  // has been silent for `fallbackAfter`. If false, nothing is offered in these
  // cases.
  bool fallback = true;
  Duration fallbackAfter{1000};

  // Mesos's own allocator decides, with these sorters. The module only compares
  // the sidecar's decisions with the offers of that allocator.
  bool shadow = false;
  std::string roleSorter = "drf";
  std::string frameworkSorter = "drf";

  // If an agent's maintenance begins later than this, only frameworks that the
  // sidecar reclaims from get inverse offers for it.
  Duration inverseOffersWithin{3162240000000};

  // After this many consecutive barren intervals (see IdleSidecarCheck) the
  // module decides one cycle; 0: never.
  size_t barrenIntervalsMax = 300;

  // This many bad decisions within ten seconds end the session; the next
  // session begins after the pause.
  size_t badDecisionsMax = 1000;
  Duration breakerPause{30000};
};


// Parses all parameters. `error` lists every invalid one, and is empty if none
// is.
Parameters parseParameters(
    const std::vector<std::pair<std::string, std::string>>& given,
    std::string* error);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_PARAMETERS_HPP__
