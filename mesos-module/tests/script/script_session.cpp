#include "tests/script/script.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace allocator {
namespace brain {
namespace {

bool fromHex(const std::string& text, std::string* bytes)
{
  static const std::string digits = "0123456789abcdef";

  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    const size_t high = digits.find(text[i]);
    const size_t low = digits.find(text[i + 1]);
    if (high == std::string::npos || low == std::string::npos) {
      return false;
    }
    bytes->push_back(static_cast<char>(high * 16 + low));
  }

  return text.size() % 2 == 0;
}


uint32_t toNumber(const std::string& text)
{
  return static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
}

} // namespace {


void Script::addSessionCommands()
{
  commands["welcomed"] = [this](const Line& line) {
    ++sessionNumber;
    sequence = cycles = 0;
    nextDecision = 1;
    kinds.clear();

    Welcomed event;
    event.kindsMax = static_cast<uint32_t>(line.number("kinds", 0));
    event.chunkBytesMax = line.number("chunk-bytes", 1 << 20);
    return step(event);
  };

  commands["connected"] = [this](const Line&) {
    return step(Connected{"sidecar", "1"});
  };

  commands["ended"] = [this](const Line& line) {
    Ended event;
    event.wasConnected = line.number("connected", 1) != 0;
    event.why = line.words.size() > 1 ? line.word(1) : "lost";
    event.retryInMs = line.number("retry", 50);
    return step(event);
  };

  commands["not-started"] = [this](const Line& line) {
    return step(NotStarted{line.word(1)});
  };

  commands["answer"] = [this](const Line& line) { return answer(line); };

  commands["answer-bytes"] = [this](const Line& line) {
    std::string bytes;
    wire::DecisionBatch batch;
    if (!fromHex(line.word(1), &bytes) || !batch.ParseFromString(bytes)) {
      return std::string("error: these bytes are no DecisionBatch\n");
    }
    return decide(std::move(batch), line.number("known", lastRevision));
  };

  commands["bytes"] = [this](const Line&) {
    inBytes = true;
    return std::string();
  };

  commands["unchecked"] = [this](const Line&) {
    checking = false;
    return std::string();
  };

  commands["at"] = [this](const Line& line) {
    nowMs = std::strtoll(line.word(1).c_str(), nullptr, 10);
    return std::string();
  };

  commands["wake"] = [this](const Line& line) {
    const int64_t silentMs = line.number("silent", 0);
    return step(Wake{silentMs, line.number("quiet", silentMs)});
  };

  commands["settle"] = [this](const Line&) { return settle(); };

  commands["pass"] = [this](const Line& line) {
    return pass(std::strtoll(line.word(1).c_str(), nullptr, 10));
  };
}


// Decisions such as FRAMEWORK@ROLE@AGENT=cpus:1;mem:2 by name, or
// raw@1@1@1=0:1000 by number.
std::string Script::answer(const Line& line)
{
  wire::DecisionBatch batch;
  batch.set_more(line.number("more", 0) != 0);
  batch.set_holds_back(line.number("holds-back", 0) != 0);

  for (size_t i = 0; i < line.keys.size(); ++i) {
    if (line.keys[i].find('@') != std::string::npos) {
      addRow(line.keys[i] + "@" + line.values[i], &batch);
    }
  }

  // Reclaims, such as leave=framework@agent,framework@agent, by name or handle.
  const Cluster& cluster = brain.cluster();
  for (const std::string& each : split(line.text("leave"), ',')) {
    const std::vector<std::string> words = split(each, '@');
    if (words.size() != 2) {
      wrong = "'" + each + "' should be like framework@agent";
      continue;
    }
    const uint32_t framework = cluster.frameworkHandles.find(words[0]);
    const uint32_t agent = cluster.agentHandles.find(words[1]);
    wire::Reclaims* reclaims = batch.mutable_reclaims();
    reclaims->add_framework(framework > 0 ? framework : toNumber(words[0]));
    reclaims->add_agent(agent > 0 ? agent : toNumber(words[1]));
  }

  // Gangs, such as gangs=0+2,5+1: the first decision, and how many.
  for (const std::string& each : split(line.text("gangs"), ',')) {
    const std::vector<std::string> words = split(each, '+');
    if (words.size() != 2) {
      wrong = "'" + each + "' should be like 0+2";
      continue;
    }
    batch.mutable_gangs()->add_first(toNumber(words[0]));
    batch.mutable_gangs()->add_count(toNumber(words[1]));
  }

  return decide(std::move(batch), line.number("known", lastRevision));
}


void Script::addRow(const std::string& row, wire::DecisionBatch* batch)
{
  const std::vector<std::string> words = split(row, '@');
  const bool raw = words[0] == "raw";
  wire::Holdings* group = batch->add_grants();
  const Cluster& cluster = brain.cluster();

  if (words.size() < (raw ? 4 : 3)) {
    wrong = "'" + row + "' should be like framework@role@agent=cpus:1";
    return;
  }

  if (raw) {
    group->add_framework(toNumber(words[1]));
    group->add_role(toNumber(words[2]));
    group->add_agent(toNumber(words[3]));
  } else {
    group->add_framework(cluster.frameworkHandles.find(words[0]));
    const uint32_t role = cluster.roles.find(words[1]);
    for (uint32_t handle = 1; role != 0; ++handle) {
      const uint32_t bearer = cluster.roles.ofHandle(handle);
      if (bearer == role || bearer == 0) {
        group->add_role(handle);
        break;
      }
    }
    group->add_agent(cluster.agentHandles.find(words[2]));
  }

  for (const std::string& item : split(words.back(), ';')) {
    const size_t colon = std::min(item.rfind(':'), item.size());
    const std::string name = item.substr(0, colon);
    const std::string amount = item.substr(std::min(colon + 1, item.size()));
    int64_t thousandths = 0;

    if (raw) {
      group->add_kind(toNumber(name));
      group->add_amount(std::strtoll(amount.c_str(), nullptr, 10));
      continue;
    }

    const auto kind = std::find(kinds.begin(), kinds.end(), name);
    if (kind == kinds.end() || !fromDecimal(amount, &thousandths)) {
      wrong = "'" + item + "' names no kind of this session, or no amount";
      continue;
    }

    group->add_kind(static_cast<uint32_t>(kind - kinds.begin()));
    group->add_amount(thousandths);
  }
}


std::string Script::decide(wire::DecisionBatch&& batch, uint64_t revision)
{
  Decided event;
  event.decisions.session = sessionNumber;
  event.decisions.sequence = ++sequence;
  event.decisions.revision = revision;
  event.decisions.cycle = ++cycles;
  event.decisions.first = nextDecision;
  event.decisions.more = batch.more();
  event.decisions.holdsBack = batch.holds_back();
  event.decisions.grants.Swap(batch.mutable_grants());
  event.decisions.reclaims.Swap(batch.mutable_reclaims());
  event.decisions.gangs.Swap(batch.mutable_gangs());

  std::string bad =
      session::checkGrants(event.decisions.grants, session::DecisionLimits());
  if (bad.empty()) {
    bad = session::checkReclaims(
        event.decisions.reclaims, session::DecisionLimits());
  }
  if (bad.empty()) {
    bad = session::checkGangs(event.decisions.gangs, event.decisions.size());
  }
  if (!bad.empty()) {
    return "error: no session accepts this: " + bad + "\n";
  }

  nextDecision += event.decisions.size();
  return step(event);
}


// Wakes the brain as long as it asks to be woken soon.
std::string Script::settle()
{
  std::string result;
  for (int turn = 0; soon && turn < 1000; ++turn) {
    result += step(Wake());
  }
  return result;
}


// Advances time and wakes the brain when due.
std::string Script::pass(int64_t ms)
{
  const int64_t end = nowMs + ms;
  std::string result = settle();

  while (wakeMs <= end) {
    nowMs = std::max(nowMs, wakeMs);
    result += step(Wake()) + settle();
  }

  nowMs = end;
  return result;
}

} // namespace brain {
} // namespace allocator {
