#include "brain/view.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "brain/user_input/text.hpp"

namespace allocator {
namespace brain {
namespace {

// Writes JSON, with a comma before every element but the first.
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


// By name, reserved and unreserved together.
void writeAmounts(const Parts& parts, const Cluster& cluster, Json* json)
{
  std::map<std::string, int64_t> byName;
  for (const Part& part : parts) {
    byName[cluster.classes.traits(part.resourceClass).name] += part.amount;
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
  // A framework that holds resources may not have subscribed yet.
  const std::string* id = cluster.frameworkHandles.id(framework);
  json->entry("framework", id == nullptr ? std::string() : *id);
  json->entry("role", cluster.roles.path(role));
  writeAmounts(parts, cluster, json);
}


void writeResource(
    const AgentResource& resource,
    const Cluster& cluster,
    Json* json)
{
  const Traits& traits = cluster.classes.traits(resource.resourceClass);
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
  json->amount(resource.total);
  json->key("held");
  json->amount(resource.held);
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
  for (const AgentResource& resource : agent.resources) {
    writeResource(resource, cluster, json);
  }
  json->end(']');

  json->key("held");
  json->begin('[');
  for (const Allocation& each : agent.allocations) {
    json->begin('{');
    writeClient(each.framework, each.role, each.parts, cluster, json);
    json->end('}');
  }
  json->end(']');

  json->key("refusals");
  json->begin('[');
  for (const OfferFilter& each : agent.filters) {
    if (!cluster.filters.isDropped(each)) {
      json->begin('{');
      writeClient(each.framework, each.role, *each.parts, cluster, json);
      json->entry("expires_ms", each.expiresMs);
      json->end('}');
    }
  }
  json->end(']');
  json->end('}');
}

// Reads a number of the query; sets `wrong` if it is invalid.
uint32_t read(
    const std::map<std::string, std::string>& query,
    const std::string& name,
    uint32_t otherwise,
    uint32_t most,
    std::string* wrong)
{
  auto found = query.find(name);
  if (found == query.end()) {
    return otherwise;
  }

  const std::string& text = found->second;
  const bool digits = !text.empty() && text.size() <= 10 &&
      text.find_first_not_of("0123456789") == std::string::npos;
  const uint64_t number =
      digits ? std::strtoull(text.c_str(), nullptr, 10) : UINT64_MAX;

  if (number > most) {
    *wrong = "'" + name + "' is '" + text + "'; it must be from 0 to " +
        std::to_string(most) + "\n";
    return 0;
  }

  return static_cast<uint32_t>(number);
}

} // namespace {


Page page(const Brain& brain, const std::map<std::string, std::string>& query)
{
  constexpr uint32_t COUNT_MAX = 1000;
  Page result;
  const uint32_t first = read(query, "first", 0, UINT32_MAX, &result.wrong);
  const uint32_t count =
      read(query, "count", COUNT_MAX, COUNT_MAX, &result.wrong);

  if (result.wrong.empty()) {
    result.json = view(brain, first, count);
  }

  return result;
}


std::string view(const Brain& brain, uint32_t first, uint32_t count)
{
  const Cluster& cluster = brain.cluster();
  const Stats stats = brain.stats();
  const uint32_t last =
      std::max(cluster.agents.end(), cluster.frameworks.end());
  const uint32_t end = std::min<uint64_t>(last, uint64_t(first) + count);

  Json json;
  json.begin('{');
  json.key("session");
  json.begin('{');
  json.entry("snapshot", stats.following);
  json.entry("connected", stats.connected);
  json.entry("cycle_under_way", brain.isUnderWay());
  json.entry("breaker_open", stats.breakerOpen);
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
