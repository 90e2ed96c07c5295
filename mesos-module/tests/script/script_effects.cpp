#include "tests/script/script.hpp"

#include <algorithm>
#include <utility>

#include <google/protobuf/text_format.h>

#include "brain/view.hpp"

namespace allocator {
namespace brain {
namespace {

std::string toHex(const google::protobuf::Message& message)
{
  static const char digits[] = "0123456789abcdef";
  const std::string bytes = message.SerializeAsString();
  std::string result;

  for (unsigned char byte : bytes) {
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }

  return result;
}


std::string toLine(const google::protobuf::Message& message)
{
  google::protobuf::TextFormat::Printer printer;
  printer.SetSingleLineMode(true);
  std::string result;
  printer.PrintToString(message, &result);
  while (!result.empty() && result.back() == ' ') {
    result.pop_back();
  }
  return result;
}


std::string reasonName(wire::OutcomeReason reason)
{
  std::string name = session::reasonName(reason);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}


std::string orNumber(const std::string* id, uint32_t number)
{
  return id == nullptr ? "#" + std::to_string(number) : *id;
}

} // namespace {


// Records how a kind is written in answers.
void Script::learn(const wire::Kind& kind)
{
  std::string text = kind.name();
  if (kind.rest()) {
    text += "*";
  }
  if (kind.reservation_depth() > 0) {
    text += "(" + kind.reserved_role() + ")";
  }
  if (kind.form() != wire::DISK_FORM_UNSPECIFIED) {
    static const char* const forms[] = {
        "", "path", "mount", "block", "raw", "volume"};
    text += std::string("[") + forms[kind.form()] + "]";
  }
  if (kind.revocable()) {
    text += "{revocable}";
  }
  if (kind.shared()) {
    text += "{shared}";
  }

  kinds.resize(std::max<size_t>(kinds.size(), kind.kind() + 1));
  kinds[kind.kind()] = text;
}


std::string Script::amounts(const wire::Holdings& rows, int row) const
{
  std::string result;
  for (int column = 0; column < rows.kind_size(); ++column) {
    const uint32_t kind = rows.kind(column);
    result += result.empty() ? "" : ";";
    result += kind < kinds.size() ? kinds[kind] : std::to_string(kind);
    result += ":" + toDecimal(rows.amount(row * rows.kind_size() + column));
  }
  return result;
}


std::string Script::describe(const wire::Holdings& rows, const char* verb)
{
  const Cluster& cluster = brain.cluster();
  std::string result;

  for (int row = 0; row < rows.framework_size(); ++row) {
    const uint32_t role = cluster.roles.ofHandle(rows.role(row));
    result += result.empty() ? "" : ", ";
    result += std::string(verb) + " " +
        orNumber(cluster.frameworkHandles.id(rows.framework(row)),
                 rows.framework(row)) +
        " in " + cluster.roles.path(role) + " on " +
        orNumber(cluster.agentHandles.id(rows.agent(row)), rows.agent(row)) +
        " " + amounts(rows, row);
  }

  return result;
}


std::string Script::describe(const wire::Event& event)
{
  for (const wire::Kind& kind : event.define().kinds()) {
    learn(kind);
  }

  switch (event.event_case()) {
    case wire::Event::kHold: return describe(event.hold(), "hold");
    case wire::Event::kTransition: return describe(event.transition(), "use");
    case wire::Event::kRelease: {
      std::string result = describe(event.release().released(), "release");
      for (int row = 0; row < event.release().refuse_ms_size(); ++row) {
        result += row == 0 ? " refused " : ",";
        result += std::to_string(event.release().refuse_ms(row));
        result += event.release().allocated(row) ? " used" : "";
      }
      return result;
    }
    default: return toLine(event);
  }
}


std::string Script::describe(const wire::SnapshotChunk& chunk)
{
  for (const wire::Kind& kind : chunk.kinds()) {
    learn(kind);
  }
  return toLine(chunk);
}


std::string Script::describe(const session::Outcomes& outcomes)
{
  std::string result;

  for (const wire::Outcomes& message : outcomes.messages) {
    int partial = 0;
    uint64_t number = message.first_decision();

    for (int reason : message.reason()) {
      result += " " + std::to_string(number++) + ":" +
          reasonName(static_cast<wire::OutcomeReason>(reason));
      if (reason == wire::OUTCOME_REASON_PARTIAL) {
        wire::Holdings rows;
        *rows.mutable_kind() = message.kind();
        *rows.mutable_amount() = message.amount();
        result += "=" + amounts(rows, partial++);
      }
    }
  }

  return result;
}


std::string Script::describe(const Message& message)
{
  switch (message.kind) {
    case Message::Kind::START: return "start sessions\n";
    case Message::Kind::STOP: return "stop sessions\n";
    case Message::Kind::CYCLE: {
      std::string result = "ask for a cycle";
      for (uint32_t agent : message.agents) {
        result += " " + orNumber(brain.cluster().agentHandles.id(agent), agent);
      }
      if (message.clockMs != nowMs) {
        result += " as of " + std::to_string(message.clockMs);
      }
      return result + "\n";
    }
    case Message::Kind::SNAPSHOT: {
      std::string result;
      for (const wire::SnapshotChunk& chunk : message.chunks) {
        result += inBytes ? "snapshot " + std::to_string(message.revision) +
                ": " + toHex(chunk)
                          : "snapshot: " + describe(chunk);
        result += "\n";
        lastRevision = chunk.last() ? message.revision : lastRevision;
      }
      return result;
    }
    case Message::Kind::EVENT:
      lastRevision = message.revision;
      return "send " + std::to_string(message.revision) + ": " +
          (inBytes ? toHex(message.event) : describe(message.event)) + "\n";
    case Message::Kind::OUTCOMES: {
      std::string result;
      for (const wire::Outcomes& each : message.outcomes->messages) {
        result += inBytes ? "outcomes: " + toHex(each) + "\n" : "";
      }
      return inBytes ? result
                     : "outcomes:" + describe(*message.outcomes) + "\n";
    }
  }

  return std::string();
}


std::string Script::takeReady()
{
  const Ready ready = brain.ready();
  const Cluster& cluster = brain.cluster();
  std::string result;

  for (const Log& log : ready.logs) {
    const char* level = log.level == Log::Level::INFO ? "info"
        : log.level == Log::Level::WARNING            ? "warning"
                                                      : "error";
    result += std::string("log ") + level + ": " + log.text + "\n";
  }

  for (const Message& message : ready.messages) {
    result += describe(message);
  }

  for (const Offer& offer : ready.offers) {
    result += "offer " +
        orNumber(cluster.frameworkHandles.id(offer.framework),
                 offer.framework) +
        " in " + cluster.roles.path(offer.role) + " on " +
        orNumber(cluster.agentHandles.id(offer.agent), offer.agent) + ": " +
        resourceText.toText(offer.parts) + "\n";
  }

  for (const InverseOffer& offer : ready.inverseOffers) {
    result += "ask " +
        orNumber(cluster.frameworkHandles.id(offer.framework),
                 offer.framework) +
        " to leave " +
        orNumber(cluster.agentHandles.id(offer.agent), offer.agent) + "\n";
  }

  resourceText.forget(ready.forgotten);
  soon = ready.soon;
  wakeMs = ready.wakeMs;

  const std::string bad = checking ? brain.check() : std::string();
  return bad.empty() ? result : result + "error: the books: " + bad + "\n";
}


// The free resources of an agent, and the holdings of frameworks.
std::string Script::books(uint32_t number) const
{
  const Cluster& cluster = brain.cluster();
  const Agent& agent = *cluster.agents.find(number);
  std::string result = agent.id + ": free " +
      resourceText.toText(cluster.books.free(agent)) + "\n";

  for (const Allocation& allocation : agent.allocations) {
    result += agent.id + ": " +
        orNumber(cluster.frameworkHandles.id(allocation.framework),
                 allocation.framework) +
        " in " + cluster.roles.path(allocation.role) + " holds " +
        resourceText.toText(allocation.parts) + "\n";
  }

  return result;
}


void Script::addViews()
{
  commands["books"] = [this](const Line&) {
    std::string result;
    for (uint32_t number = 0; number < brain.cluster().agents.end(); ++number) {
      if (brain.cluster().agents.find(number) != nullptr) {
        result += books(number);
      }
    }
    return result;
  };

  // Break the JSON into one line per framework and agent, to make differences
  // readable.
  commands["view"] = [this](const Line& line) {
    std::string result =
        view(brain, line.number("first", 0), line.number("count", 1000));
    for (size_t at = 0; (at = result.find(",{\"id\"", at)) != std::string::npos;
         ++at) {
      result.replace(at, 1, ",\n");
    }
    return result + "\n";
  };

  commands["decider"] = [this](const Line&) {
    const Stats stats = brain.stats();
    return "fallback offers " + std::to_string(stats.fallbackOffers) +
        ", since " + std::to_string(stats.fallbackSinceMs) + ", until " +
        std::to_string(stats.fallbackUntilMs) + "\n";
  };

  commands["counts"] = [this](const Line&) {
    const Stats stats = brain.stats();
    return "cycles " + std::to_string(stats.cycles) + ", fallback " +
        std::to_string(stats.fallbackCycles) + ", misfits " +
        std::to_string(stats.misfits) + ", breaker " +
        std::to_string(stats.breakerTrips) +
        (stats.breakerOpen ? " open" : "") + ", filters " +
        std::to_string(stats.filters) + ", kinds " +
        std::to_string(stats.kinds) + "\n";
  };

  commands["barren"] = [this](const Line&) {
    const Stats stats = brain.stats();
    return "barren intervals " + std::to_string(stats.barrenIntervals) +
        ", turns " + std::to_string(stats.barrenTurns) + "\n";
  };

  commands["compared"] = [this](const Line&) {
    const Comparison::Stats stats = brain.stats().compared;
    return "offers " + std::to_string(stats.offers) + ", same " +
        std::to_string(stats.same) + ", other " + std::to_string(stats.other) +
        ", none " + std::to_string(stats.none) + "\n";
  };

  commands["timers"] = [this](const Line&) {
    return std::string(soon ? "soon" : "later") + ", wake at " +
        (wakeMs == INT64_MAX ? "never" : std::to_string(wakeMs)) + "\n";
  };

  // Recomputes the books and compares.
  commands["check"] = [this](const Line&) {
    const std::string bad = brain.check();
    return bad.empty() ? std::string() : "broken: " + bad + "\n";
  };

  commands["inverse"] = [this](const Line&) {
    std::string result;
    const Cluster& cluster = brain.cluster();
    for (const auto& agent : brain.maintenance().answers()) {
      result += cluster.agents.find(agent.first)->id + ":";
      for (const auto& answer : agent.second) {
        result += " " +
            orNumber(cluster.frameworkHandles.id(answer.first), answer.first) +
            "=" +
            (answer.second.status == wire::InverseOfferUpdate::STATUS_ACCEPT
                 ? "accept"
                 : "decline");
      }
      result += "\n";
    }
    return result;
  };
}

} // namespace brain {
} // namespace allocator {
