#ifndef __ALLOCATOR_TESTS_BRAIN_LIFE_HPP__
#define __ALLOCATOR_TESTS_BRAIN_LIFE_HPP__

#include <cstdint>

#include "tests/brain/mirror.hpp"
#include "tests/brain/world.hpp"

namespace allocator {
namespace brain {

// A life of the brain with sidecars that decide at random, sensibly or not,
// come and go; nothing is between them. What the brain has sent is compared
// with what a sidecar that believes it must know.
class Life : public World
{
public:
  Life(Choices* choices, uint64_t seed) : World(choices, seed) { begin(); }

  void settle() override;

private:
  void tell(Message&& message) override;
  void talk() override;
  void decide() override;
  void wake() override;

  Mirror mirror;
  bool wanted = false;    // A session.
  bool inSession = false; // Welcomed.
  bool connected = false;
  bool asked = false;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_BRAIN_LIFE_HPP__
