#ifndef __ALLOCATOR_TESTS_BRAIN_SLOW_MODEL_HPP__
#define __ALLOCATOR_TESTS_BRAIN_SLOW_MODEL_HPP__

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "brain/brain.hpp"

namespace allocator {
namespace brain {

// The resource classes of the random test.
enum Class : uint32_t
{
  CPUS,
  MEM,
  PORTS,
  CPUS_ENG,  // Reserved to eng.
  VOLUME,    // Reserved to eng, in one resource class of 64.
  SHARED,    // Reserved to eng, in one resource class of 32, for many.
  REVOCABLE, // Cpus that may be taken back.
  CLASSES,
};

Traits traitsOf(uint32_t resourceClass);


// Amounts as plainly as can be: a number for each resource class, and each
// port.
struct Heap
{
  std::map<uint32_t, int64_t> amounts;
  std::set<uint64_t> ports;

  void add(const Heap& more);
  void take(const Heap& some); // What is there of it.
  bool contains(const Heap& some) const;
  Heap common(const Heap& other) const;
  bool empty() const { return amounts.empty() && ports.empty(); }
  bool operator==(const Heap& that) const;

  static Heap of(const Parts& parts);
  Parts toParts() const;
};


// The books as plainly as can be: nothing is kept but who has what.
struct SlowModel
{
  using Client = std::pair<std::string, std::string>; // Framework, role.

  struct Agent
  {
    Heap total;
    bool active = true;
    bool leaving = false; // It is to be maintained.
    std::map<Client, Heap> held;

    // What nobody holds; shared volumes are always free.
    Heap free() const;
  };

  struct Framework
  {
    bool active;
    std::set<std::string> roles;
    std::set<std::string> suppressed;
  };

  std::map<std::string, Agent> agents;
  std::map<std::string, Framework> frameworks;
  std::map<std::string, int64_t> cpusLimits; // By role.
  bool paused = false;

  // What the role consumes of cpus, all agents together.
  int64_t cpusConsumed(const std::string& role) const;

  // What is held of them in it and below it.
  int64_t cpusHeld(const std::string& role) const;

  // Says what is wrong with an offer, and books it; empty where nothing is.
  std::string
  offer(const std::string& agent, const Client& client, const Heap& given);

  // Says what is wrong with an inverse offer; empty where nothing is.
  std::string inverse(const std::string& agent, const std::string& framework)
      const;

  // Says where the brain's books are others.
  // Of the roles that a framework says, those that it is served in.
  static std::set<std::string> taken(const std::set<std::string>& said);

  std::string compare(const Brain& brain) const;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_BRAIN_SLOW_MODEL_HPP__
