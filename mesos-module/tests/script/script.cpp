#include "tests/script/script.hpp"

#include <cstdlib>
#include <sstream>
#include <utility>

namespace allocator {
namespace brain {

const std::string& Script::Line::word(size_t place) const
{
  static const std::string nothing;
  return place < words.size() ? words[place] : nothing;
}


std::string Script::Line::text(const std::string& key) const
{
  auto found = options.find(key);
  return found == options.end() ? std::string() : found->second;
}


std::string Script::Line::plain(const std::string& key) const
{
  return fromPercent(text(key));
}


int64_t Script::Line::number(const std::string& key, int64_t otherwise) const
{
  return has(key) ? std::strtoll(text(key).c_str(), nullptr, 10) : otherwise;
}


std::set<std::string> Script::Line::names(const std::string& key) const
{
  std::set<std::string> result;
  for (const std::string& name : split(text(key), ',')) {
    result.insert(fromPercent(name));
  }
  return result;
}


Script::Line Script::parse(const std::string& text)
{
  Line line;

  for (const std::string& word : split(text, ' ')) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      line.words.push_back(word);
    } else {
      const std::string key = word.substr(0, equals);
      line.keys.push_back(key);
      line.values.push_back(word.substr(equals + 1));
      line.options[key] = line.values.back();
    }
  }

  return line;
}


Script::Script()
{
  addMasterCommands();
  addResourceCommands();
  addSessionCommands();
  addViews();
}


std::string Script::run(const std::string& text)
{
  const Line line = parse(text.substr(0, text.find('#')));
  if (line.words.empty()) {
    return std::string();
  }

  auto command = commands.find(line.words[0]);
  if (command == commands.end()) {
    return "error: there is no command '" + line.words[0] + "'\n";
  }

  wrong.clear();
  const std::string result = command->second(line);
  return wrong.empty() ? result : "error: " + wrong + "\n" + result;
}


Parts Script::parts(const std::string& text)
{
  Parts result;
  const std::string bad = resourceText.parse(
      text,
      [this](uint32_t resourceClass, const Traits& traits) {
        DefineResourceClass event;
        event.resourceClass = resourceClass;
        event.traits = traits;
        brain.step(event, nowMs);
      },
      &result);

  wrong = bad.empty() ? wrong : bad;
  return result;
}


Quantities Script::quantities(const std::string& text)
{
  Quantities result;
  if (!parseQuantities(text, &result)) {
    wrong = "'" + text + "' should be like cpus:2;mem:512";
  }
  return result;
}


std::vector<Quantities> Script::anyOf(const std::string& text)
{
  std::vector<Quantities> result;
  for (const std::string& each : split(text, '|')) {
    result.push_back(quantities(each));
  }
  return result;
}


// Parses "start" or "start+duration", in milliseconds.
Unavailability Script::unavailability(const std::string& text)
{
  const std::vector<std::string> times = split(text, '+');
  Unavailability result;
  result.scheduled = !times.empty();
  if (!times.empty()) {
    result.startMs = std::strtoll(times[0].c_str(), nullptr, 10);
  }
  if (times.size() > 1) {
    result.durationMs = std::strtoll(times[1].c_str(), nullptr, 10);
  }
  return result;
}


Options Script::options(const Line& line)
{
  Options result;
  result.intervalMs = line.number("interval", 1000);
  result.filterGpus = line.number("filter-gpus", 1) != 0;
  result.region = line.text("region");
  result.hasMinimum = line.has("minimum");
  result.minimum = anyOf(line.text("minimum"));
  result.excludedNames = line.names("unfair");
  result.recoveryTimeoutMs = line.number("recovery-timeout", 600000);
  result.fallback = line.number("fallback", 1) != 0;
  result.fallbackAfterMs = line.number("fallback-after", 1000);
  result.inverseWithinMs = line.number("inverse-within", INT64_MAX);
  result.shadow = line.number("shadow", 0) != 0;
  result.barrenIntervalsMax = line.number("barren-max", 300);
  result.badDecisionsMax = line.number("bad-max", 1000);
  result.breakerPauseMs = line.number("breaker-pause", 30000);
  result.seed = line.number("seed", 0);
  result.sliceDecisions = line.number("slice-decisions", 2048);
  result.sliceAgents = line.number("slice-agents", 1024);
  result.sliceParts = line.number("slice-parts", 131072);
  result.rolesSpare = line.number("roles-spare", 1024);
  result.rolesSentMax = line.number("roles-sent-max", 16384);
  return result;
}


wire::Agent Script::agentInfo(const Line& line)
{
  wire::Agent info;
  info.set_hostname(line.has("host") ? line.plain("host") : line.word(1));

  for (const std::string& each : split(line.text("attributes"), ',')) {
    wire::Attribute* attribute = info.add_attributes();
    attribute->set_name(fromPercent(each.substr(0, each.find(':'))));
    attribute->set_value(fromPercent(each.substr(each.find(':') + 1)));
    attribute->set_type(wire::VALUE_TYPE_TEXT);
  }

  if (line.has("region")) {
    info.mutable_domain()->set_region(line.plain("region"));
    info.mutable_domain()->set_zone(line.plain("zone"));
  }

  if (line.has("capabilities")) {
    for (const std::string& each : line.names("capabilities")) {
      wire::AgentCapability capability;
      if (wire::AgentCapability_Parse(
              "AGENT_CAPABILITY_" + each, &capability)) {
        info.add_capabilities(capability);
      } else {
        wrong = "'" + each + "' is no capability of agents";
      }
    }
  } else if (line.number("old", 0) == 0) {
    info.add_capabilities(wire::AGENT_CAPABILITY_MULTI_ROLE);
    info.add_capabilities(wire::AGENT_CAPABILITY_HIERARCHICAL_ROLE);
  }

  return info;
}


// Parses options such as used.FRAMEWORK@ROLE=cpus:1.
std::vector<Use> Script::uses(const Line& line)
{
  std::vector<Use> result;

  for (const std::string& key : line.keys) {
    const size_t at = key.find('@');
    if (key.compare(0, 5, "used.") == 0 && at != std::string::npos) {
      Use use;
      use.framework = key.substr(5, at - 5);
      use.role = fromPercent(key.substr(at + 1));
      use.parts = parts(line.text(key));
      result.push_back(use);
    }
  }

  return result;
}


// Parses options such as @ROLE=cpus:1.
std::vector<RoleParts> Script::roleParts(const Line& line)
{
  std::vector<RoleParts> result;

  for (const std::string& key : line.keys) {
    if (key[0] == '@') {
      result.push_back(
          RoleParts{fromPercent(key.substr(1)), parts(line.text(key))});
    }
  }

  return result;
}


// Parses words such as cpus:1->cpus(eng):1.
std::vector<Conversion> Script::conversions(const Line& line, size_t from)
{
  std::vector<Conversion> result;

  for (size_t place = from; place < line.words.size(); ++place) {
    const std::string& word = line.words[place];
    const size_t arrow = word.find("->");
    if (arrow == std::string::npos) {
      wrong = "'" + word + "' should be like cpus:1->cpus(eng):1";
    } else {
      result.push_back(Conversion{
          parts(word.substr(0, arrow)), parts(word.substr(arrow + 2))});
    }
  }

  return result;
}


template <typename Event>
Event Script::framework(const Line& line)
{
  static const std::map<std::string, wire::FrameworkCapability> known = {
      {"revocable", wire::FRAMEWORK_CAPABILITY_REVOCABLE_RESOURCES},
      {"gpus", wire::FRAMEWORK_CAPABILITY_GPU_RESOURCES},
      {"shared", wire::FRAMEWORK_CAPABILITY_SHARED_RESOURCES},
      {"refinement", wire::FRAMEWORK_CAPABILITY_RESERVATION_REFINEMENT},
      {"region", wire::FRAMEWORK_CAPABILITY_REGION_AWARE}};

  Event event;
  event.framework = line.word(1);
  event.info.set_name(line.has("name") ? line.plain("name") : line.word(1));
  event.info.set_user(line.plain("user"));
  event.info.set_principal(line.plain("principal"));
  event.active = line.number("active", 1) != 0;
  event.roles = line.names("roles");
  event.suppressed = line.names("suppressed");

  if (line.number("old", 0) == 0) {
    event.info.add_capabilities(wire::FRAMEWORK_CAPABILITY_MULTI_ROLE);
  }

  for (const std::string& each : line.names("capabilities")) {
    auto found = known.find(each);
    if (found == known.end()) {
      wrong = "'" + each + "' is no capability";
    } else {
      event.info.add_capabilities(found->second);
    }
  }

  for (const std::string& key : line.keys) {
    if (key.compare(0, 8, "minimum.") == 0) {
      event.minimum.emplace_back(
          fromPercent(key.substr(8)), anyOf(line.text(key)));
    } else if (key.compare(0, 6, "label.") == 0) {
      (*event.info.mutable_labels())[fromPercent(key.substr(6))] =
          line.plain(key);
    }
  }

  return event;
}


void Script::addMasterCommands()
{
  commands["initialize"] = [this](const Line& line) {
    return step(Initialize{options(line)});
  };

  // Options such as guarantee.ROLE=cpus:2 and limit.ROLE=cpus:4.
  commands["recover"] = [this](const Line& line) {
    Recover event;
    event.expectedAgents = static_cast<int>(line.number("agents", 0));
    for (const std::string& key : line.keys) {
      SetQuota quota;
      quota.role = key.substr(key.find('.') + 1);
      if (key.compare(0, 10, "guarantee.") == 0) {
        quota.guarantees = quantities(line.text(key));
        quota.limits = quantities(line.text("limit." + quota.role));
        event.quotas.push_back(quota);
      }
    }
    return step(event);
  };

  commands["add-agent"] = [this](const Line& line) {
    AddAgent event;
    event.agent = line.word(1);
    event.info = agentInfo(line);
    event.unavailability = unavailability(line.text("unavailable"));
    event.total = parts(line.text("total"));
    event.used = uses(line);
    return step(event);
  };

  commands["update-agent"] = [this](const Line& line) {
    UpdateAgent event;
    event.agent = line.word(1);
    event.info = agentInfo(line);
    event.newInfo = line.number("new-info", 0) != 0;
    event.newAttributes = line.has("attributes");
    event.newInfo = event.newInfo || event.newAttributes;
    event.hasTotal = line.has("total");
    event.total = parts(line.text("total"));
    return step(event);
  };

  commands["add-provider"] = [this](const Line& line) {
    AddProvider event;
    event.agent = line.word(1);
    event.total = parts(line.text("total"));
    event.used = uses(line);
    return step(event);
  };

  commands["remove-agent"] = [this](const Line& line) {
    return step(RemoveAgent{line.word(1)});
  };
  commands["activate-agent"] = [this](const Line& line) {
    return step(ActivateAgent{line.word(1), true});
  };
  commands["deactivate-agent"] = [this](const Line& line) {
    return step(ActivateAgent{line.word(1), false});
  };
  commands["unavailable"] = [this](const Line& line) {
    return step(SetUnavailability{line.word(1), unavailability(line.word(2))});
  };

  commands["whitelist"] = [this](const Line& line) {
    SetWhitelist event;
    event.hostnames = {line.words.begin() + 1, line.words.end()};
    event.restricted = event.hostnames.erase("*") == 0;
    return step(event);
  };

  commands["answer-inverse"] = [this](const Line& line) {
    AnswerInverseOffer event;
    event.agent = line.word(1);
    event.framework = line.word(2);
    event.hasStatus = line.words.size() > 3;
    event.status = line.word(3) == "accept"
        ? wire::InverseOfferUpdate::STATUS_ACCEPT
        : wire::InverseOfferUpdate::STATUS_DECLINE;
    event.atNs = nowMs * 1000000;
    event.refuseMs = line.number("refuse", -1);
    return step(event);
  };

  commands["add-framework"] = [this](const Line& line) {
    return step(framework<AddFramework>(line));
  };
  commands["update-framework"] = [this](const Line& line) {
    return step(framework<UpdateFramework>(line));
  };
  commands["remove-framework"] = [this](const Line& line) {
    return step(RemoveFramework{line.word(1)});
  };
  commands["activate-framework"] = [this](const Line& line) {
    return step(ActivateFramework{line.word(1), true});
  };
  commands["deactivate-framework"] = [this](const Line& line) {
    return step(ActivateFramework{line.word(1), false});
  };

  commands["request"] = [this](const Line& line) {
    Request event;
    event.framework = line.word(1);
    for (size_t place = 2; place < line.words.size(); ++place) {
      wire::Quantities* request = event.request.add_requests();
      for (const auto& entry : quantities(line.word(place))) {
        request->add_name(entry.first);
        request->add_amount(entry.second);
      }
    }
    return step(event);
  };

  commands["suppress"] = [this](const Line& line) {
    return step(Suppress{line.word(1), line.names("roles")});
  };
  commands["revive"] = [this](const Line& line) {
    return step(Revive{line.word(1), line.names("roles")});
  };

  commands["quota"] = [this](const Line& line) {
    return step(SetQuota{
        line.word(1),
        quantities(line.text("guarantee")),
        quantities(line.text("limit"))});
  };

  commands["weights"] = [this](const Line& line) {
    SetWeights event;
    for (const std::string& role : line.keys) {
      event.weights.emplace_back(
          role, std::strtod(line.text(role).c_str(), nullptr));
    }
    return step(event);
  };

  // exclude FRAMEWORK ROLE AGENT on|off; the last three may repeat.
  commands["exclude"] = [this](const Line& line) {
    Exclude event;
    for (size_t place = 2; place + 1 < line.words.size(); place += 3) {
      event.rows.push_back(
          {line.word(1),
           fromPercent(line.word(place)),
           line.word(place + 1),
           line.word(place + 2) != "off"});
    }
    return step(event);
  };
}


void Script::addResourceCommands()
{
  commands["convert"] = [this](const Line& line) {
    ConvertHeld event;
    event.agent = line.word(1);
    event.framework = line.word(2);
    event.role = line.word(3);
    event.offered = parts(line.text("offered"));
    event.conversions = conversions(line, 4);
    return step(event);
  };

  commands["convert-free"] = [this](const Line& line) {
    ConvertFree event;
    event.agent = line.word(1);
    for (const Conversion& each : conversions(line, 2)) {
      event.conversion = each;
    }
    return step(event);
  };

  commands["transition"] = [this](const Line& line) {
    return step(Transition{line.word(1), roleParts(line)});
  };

  commands["release"] = [this](const Line& line) {
    Release event;
    event.agent = line.word(1);
    event.framework = line.word(2);
    event.parts = roleParts(line);
    event.refuseMs = line.number("refuse", -1);
    event.allocated = line.number("allocated", 0) != 0;
    return step(event);
  };

  // offered-beside FRAMEWORK AGENT @ROLE=cpus:1
  commands["offered-beside"] = [this](const Line& line) {
    OfferedBeside event;
    event.framework = line.word(1);
    for (RoleParts& each : roleParts(line)) {
      event.rows.push_back({line.word(2), each.role, std::move(each.parts)});
    }
    event.silentMs = line.number("silent", 0);
    return step(event);
  };

  commands["pause"] = [this](const Line&) { return step(Pause{true}); };
  commands["resume"] = [this](const Line&) { return step(Pause{false}); };
}

} // namespace brain {
} // namespace allocator {
