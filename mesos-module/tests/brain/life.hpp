#ifndef __ALLOCATOR_TESTS_BRAIN_LIFE_HPP__
#define __ALLOCATOR_TESTS_BRAIN_LIFE_HPP__

#include <cstdint>

#include "tests/brain/mirror.hpp"
#include "tests/brain/world.hpp"

namespace allocator {
namespace brain {

// A random test of the brain without a session layer. Sidecars come and go, and
// make valid and invalid decisions. Checks that the brain's messages agree with
// its books.
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
  bool wanted = false;    // The brain wants a session.
  bool inSession = false; // Welcomed.
  bool connected = false;
  bool asked = false;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_BRAIN_LIFE_HPP__
