#include "brain/user_input/text.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>

using std::string;

namespace allocator {
namespace brain {
namespace {

constexpr char REPLACEMENT[] = "\xEF\xBF\xBD";
constexpr char ELLIPSIS[] = "...";

// A tilde and 16 digits.
constexpr size_t MARK_BYTES = 17;


// FNV-1a, the same on every machine.
uint64_t hashOf(const string& text)
{
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : text) {
    hash = (hash ^ byte) * 0x100000001b3u;
  }
  return hash;
}


bool isTail(const string& text, size_t at)
{
  return at < text.size() &&
      (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}


// Length of the character at this position, 0 if invalid. Follows the table in
// RFC 3629: no overlong forms, surrogates, or code points above U+10FFFF.
size_t characterAt(const string& text, size_t at)
{
  const unsigned char first = static_cast<unsigned char>(text[at]);
  const unsigned char second =
      at + 1 < text.size() ? static_cast<unsigned char>(text[at + 1]) : 0;

  if (first < 0x80) {
    return 1;
  }

  if (first >= 0xC2 && first <= 0xDF) {
    return isTail(text, at + 1) ? 2 : 0;
  }

  if (first >= 0xE0 && first <= 0xEF) {
    const bool forbidden =
        (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F);
    return !forbidden && isTail(text, at + 1) && isTail(text, at + 2) ? 3 : 0;
  }

  if (first >= 0xF0 && first <= 0xF4) {
    const bool forbidden =
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return !forbidden && isTail(text, at + 1) && isTail(text, at + 2) &&
            isTail(text, at + 3)
        ? 4
        : 0;
  }

  return 0;
}

} // namespace {


string markOf(const string& text)
{
  char mark[MARK_BYTES + 1];
  snprintf(mark, sizeof(mark), "~%016" PRIx64, hashOf(text));
  return mark;
}


bool isText(const string& text)
{
  for (size_t at = 0; at < text.size();) {
    const size_t length = characterAt(text, at);
    if (length == 0) {
      return false;
    }
    at += length;
  }

  return true;
}


string toShown(const string& text, size_t bytesMax)
{
  const size_t room = bytesMax - (sizeof(ELLIPSIS) - 1);
  string result;

  for (size_t at = 0; at < text.size();) {
    const size_t length = characterAt(text, at);
    const unsigned char first = static_cast<unsigned char>(text[at]);
    const bool shown = length > 0 && first >= 0x20 && first != 0x7F;
    const string character = shown ? text.substr(at, length) : REPLACEMENT;
    at += length == 0 ? 1 : length;

    const size_t most = at < text.size() ? room : bytesMax;
    if (result.size() + character.size() > most) {
      return result + ELLIPSIS;
    }
    result += character;
  }

  return result;
}


string toText(const string& text, size_t bytesMax)
{
  if (text.size() <= bytesMax && isText(text)) {
    return text;
  }

  const size_t room = bytesMax > MARK_BYTES ? bytesMax - MARK_BYTES : 0;
  string result;

  for (size_t at = 0; at < text.size();) {
    const size_t length = characterAt(text, at);
    const string character =
        length == 0 ? REPLACEMENT : text.substr(at, length);

    if (result.size() + character.size() > room) {
      break;
    }

    result += character;
    at += length == 0 ? 1 : length;
  }

  return result + markOf(text);
}

} // namespace brain {
} // namespace allocator {
