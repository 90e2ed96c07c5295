#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <dirent.h>

#include <gtest/gtest.h>

#include "tests/brain/life.hpp"
#include "tests/brain/session_life.hpp"
#include "tests/fuzz.hpp"

// Runs the inputs found by the fuzzer (`corpus/`). Each is a separate test, so
// that `--gtest_filter` can isolate a crash.

namespace allocator {
namespace brain {
namespace {

std::vector<std::string> inputs(const std::string& target)
{
  std::vector<std::string> names;
  DIR* folder = opendir((CORPUS "/" + target).c_str());

  for (dirent* entry = nullptr;
       folder != nullptr && (entry = readdir(folder)) != nullptr;) {
    const std::string name = entry->d_name;
    if (name[0] != '.') {
      names.push_back(name);
    }
  }

  if (folder != nullptr) {
    closedir(folder);
  }

  std::sort(names.begin(), names.end());
  return names;
}


// Test names allow only letters, digits and underscores.
std::string nameOf(const ::testing::TestParamInfo<std::string>& info)
{
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}


template <typename Life>
std::string playFile(const std::string& path)
{
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(
      (std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) {
    return path + " cannot be read";
  }
  return faultOf<Life>(
      reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}


class BrainCorpusTest : public ::testing::TestWithParam<std::string>
{};


TEST_P(BrainCorpusTest, TheBooksAddUp)
{
  EXPECT_EQ("", playFile<Life>(CORPUS "/brain/" + GetParam()));
}


class SessionCorpusTest : public ::testing::TestWithParam<std::string>
{};


TEST_P(SessionCorpusTest, TheBooksAddUp)
{
  EXPECT_EQ("", playFile<SessionLife>(CORPUS "/session/" + GetParam()));
}


INSTANTIATE_TEST_SUITE_P(
    Fuzz,
    BrainCorpusTest,
    ::testing::ValuesIn(inputs("brain")),
    nameOf);
INSTANTIATE_TEST_SUITE_P(
    Fuzz,
    SessionCorpusTest,
    ::testing::ValuesIn(inputs("session")),
    nameOf);


TEST(CorpusTest, BothHaveInputs)
{
  EXPECT_FALSE(inputs("brain").empty());
  EXPECT_FALSE(inputs("session").empty());
}

} // namespace {
} // namespace brain {
} // namespace allocator {
