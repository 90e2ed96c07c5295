#include "fuzz.hpp"

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

// Plays files that a fuzzer has found, where there is no fuzzer.
int main(int argc, char** argv)
{
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string bytes(
        (std::istreambuf_iterator<char>(file)),
        std::istreambuf_iterator<char>());

    if (!file) {
      std::cerr << argv[i] << " cannot be read" << std::endl;
      return 1;
    }

    std::cerr << argv[i] << "\r";
    LLVMFuzzerTestOneInput(
        reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }

  std::cout << argv[0] << " played " << argc - 1 << " files" << std::endl;
  return argc > 1 ? 0 : 1;
}
