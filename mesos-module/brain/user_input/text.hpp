#ifndef __ALLOCATOR_BRAIN_USER_INPUT_TEXT_HPP__
#define __ALLOCATOR_BRAIN_USER_INPUT_TEXT_HPP__

#include <cstddef>
#include <string>

#include "brain/user_input/bounds.hpp"

namespace allocator {
namespace brain {

// Text as the protocol accepts it: UTF-8 of bounded length. Mesos lets
// frameworks and agents use any bytes, but a message with such text would end
// every session.
//
// Invalid UTF-8 becomes U+FFFD. A changed text ends in a hash of the original,
// so different texts stay different.
std::string toText(const std::string& text, size_t bytesMax = TEXT_BYTES_MAX);

// The hash that `toText` appends: a tilde and 16 hexadecimal digits.
std::string markOf(const std::string& text);

bool isText(const std::string& text);

// The beginning of a text for a log line: UTF-8 without control characters,
// with an ellipsis if shortened. Reads at most about `bytesMax` bytes.
std::string toShown(const std::string& text, size_t bytesMax);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_USER_INPUT_TEXT_HPP__
