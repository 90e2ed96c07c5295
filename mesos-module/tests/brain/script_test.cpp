#include "tests/script/script.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <dirent.h>

#include <gtest/gtest.h>

#include "tests/script/c_interface.h"

// Runs the transcripts (`transcripts/`) through a brain. A transcript has
// blocks of commands, a line of dashes, and the effects; an empty line
// separates blocks.
//
// `REWRITE=1` writes the current effects; commit them only if you understand
// every line.

namespace allocator {
namespace brain {
namespace {

std::vector<std::string> transcripts()
{
  std::vector<std::string> names;
  DIR* folder = opendir(BRAIN_TRANSCRIPTS);

  for (dirent* entry = nullptr;
       folder != nullptr && (entry = readdir(folder)) != nullptr;) {
    const std::string name = entry->d_name;
    if (name.size() > 4 && name.substr(name.size() - 4) == ".txt") {
      names.push_back(name.substr(0, name.size() - 4));
    }
  }

  if (folder != nullptr) {
    closedir(folder);
  }

  std::sort(names.begin(), names.end());
  return names;
}


// The transcript with the current effects.
std::string replay(std::istream* in)
{
  Script script;
  std::string result;
  std::string output;
  std::string line;
  bool expected = false;

  while (std::getline(*in, line)) {
    if (expected) {
      expected = !line.empty();
      result += line.empty() ? "\n" : "";
      continue;
    }

    result += line + "\n";
    if (line == "----") {
      result += output;
      output.clear();
      expected = true;
    } else {
      output += script.run(line);
    }
  }

  return result;
}


class TranscriptTest : public ::testing::TestWithParam<std::string>
{};


TEST_P(TranscriptTest, SaysWhatTheBrainDoes)
{
  const std::string path = BRAIN_TRANSCRIPTS "/" + GetParam() + ".txt";
  std::stringstream text;
  text << std::ifstream(path).rdbuf();

  std::istringstream in(text.str());
  const std::string now = replay(&in);
  EXPECT_EQ(std::string::npos, now.find("\nerror: ")) << now;

  if (std::getenv("REWRITE") != nullptr) {
    std::ofstream(path) << now;
  } else {
    EXPECT_EQ(text.str(), now);
  }
}


INSTANTIATE_TEST_SUITE_P(
    Brain,
    TranscriptTest,
    ::testing::ValuesIn(transcripts()),
    [](const ::testing::TestParamInfo<std::string>& info) {
      return info.param;
    });


TEST(ScriptTest, WhatIsWrongWithALineIsSaid)
{
  Script script;
  EXPECT_EQ("", script.run("# nothing"));
  EXPECT_EQ("error: there is no command 'dance'\n", script.run("dance"));
  EXPECT_EQ(
      "error: 'cpus': it should be like cpus:2\n",
      script.run("add-agent a total=cpus"));
}


TEST(CInterfaceTest, LinesGoInAndOut)
{
  allocator_brain* brain = allocator_brain_new();
  ASSERT_NE(nullptr, brain);

  const std::string lines = "initialize\nadd-agent a total=cpus:2\n"
                            "add-framework f roles=eng\nsettle\n";
  size_t size = 0;
  const char* result =
      allocator_brain_run(brain, lines.data(), lines.size(), &size);
  EXPECT_EQ("offer f in eng on a: cpus:2\n", std::string(result, size));
  EXPECT_EQ('\0', result[size]);
  allocator_brain_delete(brain);
}

} // namespace {
} // namespace brain {
} // namespace allocator {
