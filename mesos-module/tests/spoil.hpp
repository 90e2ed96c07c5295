#ifndef __ALLOCATOR_TESTS_SPOIL_HPP__
#define __ALLOCATOR_TESTS_SPOIL_HPP__

#include <cstddef>
#include <string>

#include "session/decisions.hpp"

#include "tests/choices.hpp"

namespace allocator {
namespace session {

// Random bytes; their number is below `end`.
std::string nonsense(size_t end, Choices* choices);

// Corrupts a valid answer; returns the bytes.
std::string spoil(wire::SessionResponse response, Choices* choices);

// Returns what is invalid in accepted decisions, or an empty string. Written
// independently of `checkGrants`, row by row.
std::string unsound(const Decisions& decisions);

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_SPOIL_HPP__
