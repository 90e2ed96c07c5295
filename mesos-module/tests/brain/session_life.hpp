#ifndef __ALLOCATOR_TESTS_BRAIN_SESSION_LIFE_HPP__
#define __ALLOCATOR_TESTS_BRAIN_SESSION_LIFE_HPP__

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "session/keeper.hpp"

#include "tests/memory_link.hpp"
#include "tests/model_sidecar.hpp"

#include "tests/brain/mirror.hpp"
#include "tests/brain/world.hpp"

namespace allocator {
namespace brain {

// A random test of brain and session, with a sidecar that mostly follows the
// protocol: sometimes an answer is corrupted, repeated, or not a message.
class SessionLife : public World, private session::Keeper::Owner
{
public:
  SessionLife(Choices* choices, uint64_t seed);

  void settle() override;

  // Ended sessions and attempts.
  uint64_t ends = 0;

  // How often `settle` found that the sidecar's state equals the brain's.
  uint64_t settled = 0;

private:
  void tell(Message&& message) override;
  void talk() override;
  void decide() override;
  void wake() override;

  void welcomed(const wire::Welcome& welcome, size_t chunkBytesMax) override;
  void connected(const wire::Welcome& welcome) override;
  void decided(session::Decisions&& decisions) override;
  void ended(const session::Keeper::End& end) override;

  session::KeeperOptions settings();
  session::TimePoint now() const;
  void pass(int64_t ms);

  bool read(bool still);
  void believe(const wire::SessionRequest& request);
  void fill(wire::SessionResponse* answer);
  void say(const std::string& bytes);

  Choices* const choices;
  session::MemoryLink* link; // Owned by the keeper.
  std::unique_ptr<session::Keeper> keeper;
  int64_t cycleMs = -1; // Clock of the cycle being requested.

  session::ModelSidecar sidecar;
  Mirror mirror;
  int stream = 0;
  // Whether the module received anything other than the sidecar sent.
  bool spoilt = false;
  std::deque<wire::SessionResponse> said; // Not received yet.
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_BRAIN_SESSION_LIFE_HPP__
