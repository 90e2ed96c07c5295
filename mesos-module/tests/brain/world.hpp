#ifndef __ALLOCATOR_TESTS_BRAIN_WORLD_HPP__
#define __ALLOCATOR_TESTS_BRAIN_WORLD_HPP__

#include <cstdint>
#include <string>

#include "brain/brain.hpp"

#include "tests/choices.hpp"

#include "tests/brain/slow_model.hpp"

namespace allocator {
namespace brain {

// Makes random calls of a master. After each call, the brain's books are
// compared with a slow model. Subclasses act as the sidecar.
class World
{
public:
  virtual ~World() {}

  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Makes one call.
  void turn();

  // Lets the sidecar catch up, and compares what it knows.
  virtual void settle() = 0;

  uint64_t compared() const
  {
    const Comparison::Stats stats = brain.stats().compared;
    return stats.same + stats.other + stats.none;
  }

  std::string fault; // The first one.
  uint64_t offers = 0;
  uint64_t inverseOffers = 0;
  uint64_t answers = 0;
  uint64_t sessions = 0;
  uint64_t slices = 0;

protected:
  World(Choices* choices, uint64_t seed);

  // Makes the first calls. Needs the members of the subclass.
  void begin();

  // Passes a message to the sidecar.
  virtual void tell(Message&& message) = 0;

  virtual void talk() = 0;   // The sidecar arrives, connects, or leaves.
  virtual void decide() = 0; // The sidecar answers.
  virtual void wake() = 0;   // Time passes.

  uint32_t draw(uint32_t end) { return choices->draw(end); }

  template <typename Event>
  bool step(const Event& event)
  {
    const std::string refused = brain.step(event, nowMs);
    obey(brain.ready());
    note(model.compare(brain));
    return refused.empty();
  }

  void note(const std::string& wrong);
  wire::Holdings decision();
  wire::Gangs gangs(uint32_t decisions);
  wire::Reclaims reclaims();

  const bool shadow; // Another allocator decides.
  Brain brain;
  SlowModel model;
  int64_t nowMs = 0;
  bool soon = false;

private:
  void obey(Ready&& ready);
  void expect(bool right, bool done);

  std::string agentId() { return "agent" + std::to_string(draw(8)); }
  std::string frameworkId() { return "framework" + std::to_string(draw(5)); }

  std::string role()
  {
    const char* const roles[] = {"eng", "ops", "eng/ads", "eng/ads/a/b"};
    return roles[draw(4)];
  }

  Heap heap(bool small);
  Parts parts(const Heap& heap);

  void sayOdd(AddFramework* event);
  void sayOdd(wire::Agent* info);
  void request();
  void addAgent();
  void changeAgent();
  void addFramework();
  void changeFramework();
  void changeSettings();
  void comeBack();
  void convert();
  void convertFree();
  void offerBeside();
  void maintain();
  void pause();

  Choices* const choices;
  const uint64_t seed;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_BRAIN_WORLD_HPP__
