#ifndef __ALLOCATOR_TESTS_SPOIL_HPP__
#define __ALLOCATOR_TESTS_SPOIL_HPP__

#include <cstddef>
#include <string>

#include "session/decisions.hpp"

#include "tests/choices.hpp"

namespace allocator {
namespace session {

// Bytes of no meaning, fewer than `end`.
std::string nonsense(size_t end, Choices* choices);

// Turns an honest answer into something else, as bytes.
std::string spoil(wire::SessionResponse response, Choices* choices);

// Says what cannot be believed of decisions that are; an empty text where
// nothing is. Written apart from `checkGrants`, row by row.
std::string unsound(const Decisions& decisions);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_SPOIL_HPP__
