#ifndef __ALLOCATOR_BRAIN_WORDS_TEXT_HPP__
#define __ALLOCATOR_BRAIN_WORDS_TEXT_HPP__

#include <cstddef>
#include <string>

#include "brain/words/bounds.hpp"

namespace allocator {
namespace brain {

// A text as the protocol takes it: UTF-8, and not too long. Frameworks
// and agents name themselves as they like, and Mesos lets them, but a
// message with such a text would end each session with the sidecar.
//
// What is no UTF-8 becomes U+FFFD. A text that was changed ends in a
// number made of the original, so that different ones stay different.
std::string toText(const std::string& text, size_t bytesMax = TEXT_BYTES_MAX);

// That number: a tilde and 16 digits, nearly always others for another text.
std::string markOf(const std::string& text);

// Whether it is UTF-8.
bool isText(const std::string& text);

// The beginning of a text as a line can show it: UTF-8, without control
// characters, and with an ellipsis where it goes on. Costs what is shown.
std::string toShown(const std::string& text, size_t bytesMax);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_WORDS_TEXT_HPP__
