#include "tests/fuzz.hpp"

#include <csignal>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include <unistd.h>

namespace {

const char* playing = "";


// Says which file it was.
void aborted(int)
{
  const bool said = ::write(2, playing, std::strlen(playing)) >= 0 &&
      ::write(2, "\n", 1) >= 0;
  ::_exit(said ? 1 : 2);
}

} // namespace {


// Plays files that a fuzzer has found, where there is no fuzzer.
int main(int argc, char** argv)
{
  std::signal(SIGABRT, aborted);

  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string bytes(
        (std::istreambuf_iterator<char>(file)),
        std::istreambuf_iterator<char>());

    if (!file) {
      std::cerr << argv[i] << " cannot be read" << std::endl;
      return 1;
    }

    playing = argv[i];
    LLVMFuzzerTestOneInput(
        reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }

  std::cout << argv[0] << " played " << argc - 1 << " files" << std::endl;
  return argc > 1 ? 0 : 1;
}
