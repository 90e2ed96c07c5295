#include "tests/script/c_interface.h"

#include <exception>
#include <string>

#include "tests/script/script.hpp"

struct allocator_brain
{
  allocator::brain::Script script;
  std::string result;
};


allocator_brain* allocator_brain_new(void)
{
  try {
    return new allocator_brain();
  } catch (const std::exception&) {
    return nullptr;
  }
}


void allocator_brain_delete(allocator_brain* brain)
{
  delete brain;
}


const char* allocator_brain_run(
    allocator_brain* brain,
    const char* lines,
    size_t length,
    size_t* size)
{
  try {
    brain->result.clear();
    const std::string text(lines, length);

    for (const std::string& line : allocator::brain::split(text, '\n')) {
      brain->result += brain->script.run(line);
    }

    *size = brain->result.size();
    return brain->result.c_str();
  } catch (const std::exception&) {
    return nullptr;
  }
}
