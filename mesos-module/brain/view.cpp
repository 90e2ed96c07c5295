#include "brain/view.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "brain/text.hpp"

namespace allocator {
namespace brain {
namespace {

// Writes JSON; a comma goes before whatever is not the first.
class Json
{
public:
  void begin(char bracket)
  {
    separate();
    text += bracket;
    isFirst = true;
  }

  void end(char bracket)
  {
    text += bracket;
    isFirst = false;
  }

  void key(const std::string& name)
  {
    value(name);
    text += ":";
    isFirst = true;
  }

  void value(const std::string& content)
  {
    separate();
    text += '"';
    for (unsigned char c : toText(content)) {
      if (c == '"' || c == '\\') {
        text += '\\';
        text += static_cast<char>(c);
      } else if (c < 0x20) {
        char escape[8];
        snprintf(escape, sizeof(escape), "\\u%04x", c);
        text += escape;
      } else {
        text += static_cast<char>(c);
      }
    }
    text += '"';
  }

  void value(bool content)
  {
    separate();
    text += content ? "true" : "false";
  }

  void value(int64_t content)
  {
    separate();
    text += std::to_string(content);
  }

  // An amount in thousandths, as a decimal number.
  void amount(int64_t thousandths)
  {
    separate();
    char digits[32];
    snprintf(
        digits,
        sizeof(digits),
        "%s%lld.%03lld",
        thousandths < 0 ? "-" : "",
        static_cast<long long>(std::abs(thousandths / 1000)),
        static_cast<long long>(std::abs(thousandths % 1000)));
    text += digits;
  }

  template <typename Value>
  void entry(const std::string& name, const Value& content)
  {
    key(name);
    value(content);
  }

  std::string text;

private:
  void separate()
  {
    if (!isFirst) {
      text += ',';
    }
    isFirst = false;
  }

  bool isFirst = true;
};


void writeRoles(
    const char* name,
    const std::set<uint32_t>& roles,
    const Cluster& cluster,
    Json* json)
{
  json->key(name);
  json->begin('[');
  for (uint32_t role : roles) {
    json->value(cluster.roles.path(role));
  }
  json->end(']');
}


void writeFramework(
    const Framework& framework,
    const Cluster& cluster,
    Json* json)
{
  json->begin('{');
  json->entry("id", framework.id);
  json->entry("active", framework.active);
  writeRoles("roles", framework.roles, cluster, json);
  writeRoles("suppressed", framework.suppressed, cluster, json);
  json->end('}');
}


// By name; what is reserved and what is not is one amount.
void writeAmounts(const Parts& parts, const Cluster& cluster, Json* json)
{
  std::map<std::string, int64_t> byName;
  for (const Part& part : parts) {
    byName[cluster.pieces.traits(part.piece).name] += part.amount;
  }

  json->key("amounts");
  json->begin('{');
  for (const auto& entry : byName) {
    json->key(entry.first);
    json->amount(entry.second);
  }
  json->end('}');
}


void writeClient(
    uint32_t framework,
    uint32_t role,
    const Parts& parts,
    const Cluster& cluster,
    Json* json)
{
  // Who holds something need not have subscribed yet.
  const std::string* id = cluster.frameworkHandles.id(framework);
  json->entry("framework", id == nullptr ? std::string() : *id);
  json->entry("role", cluster.roles.path(role));
  writeAmounts(parts, cluster, json);
}


void writePiece(const Slot& slot, const Cluster& cluster, Json* json)
{
  const Traits& traits = cluster.pieces.traits(slot.piece);
  json->begin('{');
  json->entry("name", traits.name);
  if (traits.depth > 0) {
    json->entry("reserved_role", traits.reservedRole);
  }
  if (traits.revocable) {
    json->entry("revocable", true);
  }
  if (traits.shared) {
    json->entry("shared", true);
  }
  json->key("total");
  json->amount(slot.total);
  json->key("held");
  json->amount(slot.held);
  json->end('}');
}


void writeAgent(const Agent& agent, const Cluster& cluster, Json* json)
{
  json->begin('{');
  json->entry("id", agent.id);
  json->entry("hostname", agent.hostname);
  json->entry("active", agent.active);

  json->key("pieces");
  json->begin('[');
  for (const Slot& slot : agent.slots) {
    writePiece(slot, cluster, json);
  }
  json->end(']');

  json->key("held");
  json->begin('[');
  for (const Holding& each : agent.held) {
    json->begin('{');
    writeClient(each.framework, each.role, each.parts, cluster, json);
    json->end('}');
  }
  json->end(']');

  json->key("refusals");
  json->begin('[');
  for (const Refusal& each : agent.refusals) {
    json->begin('{');
    writeClient(each.framework, each.role, *each.parts, cluster, json);
    json->entry("expires_ms", each.expiresMs);
    json->end('}');
  }
  json->end(']');
  json->end('}');
}

} // namespace {


std::string view(const Brain& brain, uint32_t first, uint32_t count)
{
  const Cluster& cluster = brain.cluster();
  const Counts counts = brain.counts();
  const uint32_t last =
      std::max(cluster.agents.end(), cluster.frameworks.end());
  const uint32_t end = std::min<uint64_t>(last, uint64_t(first) + count);

  Json json;
  json.begin('{');
  json.key("session");
  json.begin('{');
  json.entry("snapshot", counts.following);
  json.entry("connected", counts.connected);
  json.entry("cycle_under_way", brain.isUnderWay());
  json.entry("breaker_open", counts.breakerOpen);
  json.end('}');
  json.entry("paused", cluster.paused);
  json.entry("recovering", cluster.recovering);
  json.entry("next", int64_t(end < last ? end : 0));

  json.key("frameworks");
  json.begin('[');
  for (uint32_t number = first; number < end; ++number) {
    const Framework* framework = cluster.frameworks.find(number);
    if (framework != nullptr) {
      writeFramework(*framework, cluster, &json);
    }
  }
  json.end(']');

  json.key("agents");
  json.begin('[');
  for (uint32_t number = first; number < end; ++number) {
    const Agent* agent = cluster.agents.find(number);
    if (agent != nullptr) {
      writeAgent(*agent, cluster, &json);
    }
  }
  json.end(']');
  json.end('}');
  return json.text;
}

} // namespace brain {
} // namespace allocator {
