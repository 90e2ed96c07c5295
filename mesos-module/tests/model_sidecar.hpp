#ifndef __ALLOCATOR_TESTS_MODEL_SIDECAR_HPP__
#define __ALLOCATOR_TESTS_MODEL_SIDECAR_HPP__

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/v1/session.pb.h"

namespace allocator {
namespace session {

namespace wire = ::allocator::v1;

// A sidecar without an allocator: checks that the module obeys the protocol,
// and answers every cycle with the same decisions.
class ModelSidecar
{
public:
  // Returns the answers to a message. If the module breaks a rule, sets `fault`
  // and returns no more answers.
  std::vector<wire::SessionResponse> take(const wire::SessionRequest& request);

  // The answer to a cycle: decisions per part, each in a separate group, and
  // parts.
  int decisionsPerCycle = 2;
  int partsPerCycle = 1;

  // Values in the welcome.
  uint32_t messageBytesMax = 4 << 20;
  uint32_t kindsMax = 0;

  std::string fault;

  // The module's message size limit.
  uint32_t moduleBytesMax = 0;

  bool streaming = false;
  int chunks = 0;
  uint64_t batches = 0;
  uint64_t events = 0;
  uint64_t figures = 0; // Batches with figures, and the last figures.
  wire::ModuleFigures lastFigures;
  uint64_t cycles = 0;
  uint64_t sequence = 0;
  uint64_t nextDecision = 1;
  uint64_t settled = 0; // Decisions with an outcome.
  int64_t clockMs = 0;
  std::vector<uint32_t> cycleAgents; // Of the last cycle.

private:
  std::vector<wire::SessionResponse> answer(const wire::EventBatch& batch);
  void check(const wire::EventBatch& batch);

  bool greeted = false;
};

} // namespace session {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_MODEL_SIDECAR_HPP__
