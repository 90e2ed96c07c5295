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
  VOLUME,    // Reserved to eng, one object of 64.
  SHARED,    // Reserved to eng, one object of 32, shared.
  REVOCABLE, // Revocable cpus.
  CLASSES,
};

Traits traitsOf(uint32_t resourceClass);


// Resources in the simplest form: an amount per resource class, and the set of
// ports.
struct Heap
{
  std::map<uint32_t, int64_t> amounts;
  std::set<uint64_t> ports;

  void add(const Heap& more);
  void take(const Heap& some); // As much as there is.
  bool contains(const Heap& some) const;
  Heap common(const Heap& other) const;
  bool empty() const { return amounts.empty() && ports.empty(); }
  bool operator==(const Heap& that) const;

  static Heap of(const Parts& parts);
  Parts toParts() const;
};


// The books in the simplest form: only what each framework holds.
struct SlowModel
{
  using Client = std::pair<std::string, std::string>; // Framework and role.

  struct Agent
  {
    Heap total;
    bool active = true;
    bool leaving = false; // Scheduled for maintenance.
    std::map<Client, Heap> held;

    // What is not held; shared volumes are always free.
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

  // Cpus that the role consumes on all agents.
  int64_t cpusConsumed(const std::string& role) const;

  // Cpus held in the role and below.
  int64_t cpusHeld(const std::string& role) const;

  // Books an offer; returns an error, or an empty string.
  std::string
  offer(const std::string& agent, const Client& client, const Heap& given);

  // Checks an inverse offer; returns an error, or an empty string.
  std::string inverse(const std::string& agent, const std::string& framework)
      const;

  // `taken`: the accepted roles among those that a framework names. `compare`:
  // a difference from the brain's books, or an empty string.
  static std::set<std::string> taken(const std::set<std::string>& said);

  std::string compare(const Brain& brain) const;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_BRAIN_SLOW_MODEL_HPP__
