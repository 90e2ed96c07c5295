#include "brain/user_input/text.hpp"

#include <string>

#include <gtest/gtest.h>

using std::string;

namespace allocator {
namespace brain {
namespace {

TEST(TextTest, WhatIsCleanStays)
{
  const string clean = "Straße, \xE6\x97\xA5, \xF0\x9F\x98\x80";
  EXPECT_EQ(clean, toText(clean));
  EXPECT_EQ("", toText(""));
  EXPECT_EQ(string(TEXT_BYTES_MAX, 'a'), toText(string(TEXT_BYTES_MAX, 'a')));
}


TEST(TextTest, WhatIsNoUtf8IsReplacedAndMarked)
{
  const string made = toText("a\xFFz");
  EXPECT_EQ("a\xEF\xBF\xBDz~", made.substr(0, 6));
  EXPECT_EQ(6u + 16u, made.size());
  EXPECT_EQ(made, toText("a\xFFz"));
  EXPECT_NE(made, toText("a\xFEz"));
}


TEST(TextTest, EveryWrongFormIsSeen)
{
  // Truncated, overlong, a surrogate, above U+10FFFF, a lone continuation byte.
  for (const string& wrong :
       {string("\xC3"),
        string("\xE2\x82"),
        string("\xC0\xAF"),
        string("\xE0\x80\x80"),
        string("\xED\xA0\x80"),
        string("\xF4\x90\x80\x80"),
        string("\x80")}) {
    EXPECT_NE(wrong, toText(wrong));
    EXPECT_EQ(0u, toText(wrong).find("\xEF\xBF\xBD"));
  }
}


TEST(TextTest, WhatIsTooLongIsCutBetweenCharacters)
{
  string text;
  for (int i = 0; i < 100; ++i) {
    text += "\xE6\x97\xA5";
  }

  const string cut = toText(text, 40);
  EXPECT_EQ(21u + 17u, cut.size());
  EXPECT_EQ(text.substr(0, 21), cut.substr(0, 21));
  EXPECT_NE(cut, toText(text + "x", 40));
}

} // namespace {
} // namespace brain {
} // namespace allocator {
