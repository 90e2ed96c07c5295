#ifndef __ALLOCATOR_TESTS_SCRIPT_HPP__
#define __ALLOCATOR_TESTS_SCRIPT_HPP__

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "brain/brain.hpp"
#include "tests/script/resource_text.hpp"

namespace allocator {
namespace brain {

// A text interface to a brain: takes commands and returns effects as lines of
// text, for transcripts and for tests in other languages. A line is a command,
// its arguments, and options as key=value; `tests/brain/transcripts/*.txt` use
// all of them. Names and texts are percent-encoded: %20 stands for a blank. The
// script acts as the adapter, and numbers the sidecar's messages.
class Script
{
public:
  Script();

  // Runs one line; returns the effects, one per line.
  std::string run(const std::string& line);

private:
  struct Line
  {
    std::vector<std::string> words; // Starting with the command.
    std::map<std::string, std::string> options;
    std::vector<std::string> keys;   // Of the options, in order.
    std::vector<std::string> values; // Likewise.

    const std::string& word(size_t place) const;
    std::string text(const std::string& key) const;
    std::string plain(const std::string& key) const; // Percent-decoded.
    bool has(const std::string& key) const { return options.count(key) > 0; }
    int64_t number(const std::string& key, int64_t otherwise) const;
    std::set<std::string> names(const std::string& key) const;
  };

  using Command = std::function<std::string(const Line&)>;

  static Line parse(const std::string& text);

  void addMasterCommands();
  void addResourceCommands();
  void addSessionCommands();
  void addViews();

  template <typename Event>
  std::string step(const Event& event)
  {
    const std::string refused = brain.step(event, nowMs);
    const std::string effects = takeReady();
    return refused.empty() ? effects : "refused: " + refused + "\n" + effects;
  }

  // Parsing of arguments and options.
  Options options(const Line& line);
  wire::Agent agentInfo(const Line& line);
  std::vector<Use> uses(const Line& line);
  Parts parts(const std::string& text);
  std::vector<RoleParts> roleParts(const Line& line);
  std::vector<Conversion> conversions(const Line& line, size_t from);
  Quantities quantities(const std::string& text);
  std::vector<Quantities> anyOf(const std::string& text);
  Unavailability unavailability(const std::string& text);

  template <typename Event>
  Event framework(const Line& line);

  std::string answer(const Line& line);
  void addRow(const std::string& row, wire::DecisionBatch* batch);
  std::string decide(wire::DecisionBatch&& batch, uint64_t revision);
  std::string pass(int64_t ms);
  std::string settle();

  // Formatting of effects (script_effects.cpp).
  std::string takeReady();
  std::string describe(const Message& message);
  std::string describe(const wire::Event& event);
  std::string describe(const wire::SnapshotChunk& chunk);
  std::string describe(const wire::Holdings& rows, const char* verb);
  std::string describe(const session::Outcomes& outcomes);
  std::string amounts(const wire::Holdings& rows, int row) const;
  std::string books(uint32_t agent) const;
  void learn(const wire::Kind& kind);

  Brain brain;
  ResourceText resourceText;
  std::map<std::string, Command> commands;
  std::string wrong; // Error in the line.

  int64_t nowMs = 0;
  bool soon = false;
  int64_t wakeMs = INT64_MAX;
  bool inBytes = false; // Write messages as hexadecimal bytes.
  bool checking = true; // Check the books after each step.

  // State of the session.
  uint64_t sessionNumber = 0;
  uint64_t sequence = 0;
  uint64_t cycles = 0;
  uint64_t nextDecision = 1;
  uint64_t lastRevision = 0;
  std::vector<std::string> kinds; // Kinds as written in scripts.
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_SCRIPT_HPP__
