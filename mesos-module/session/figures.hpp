#ifndef __ALLOCATOR_SESSION_FIGURES_HPP__
#define __ALLOCATOR_SESSION_FIGURES_HPP__

#include <cstddef>

#include "allocator/v1/session.pb.h"

#include "session/counters.hpp"

namespace allocator {
namespace session {

// More bytes than figures ever have in a message: each number takes eleven
// at most, and there are fewer than a hundred.
constexpr size_t FIGURES_BYTES_MAX = 1100;

// Writes what a keeper counts, for the sidecar's metrics.
void writeFigures(const Counters& counters, wire::ModuleFigures* figures);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_SESSION_FIGURES_HPP__
