#include "brain/user_input/user_input.hpp"

#include <algorithm>
#include <utility>

#include "brain/user_input/text.hpp"

#include "session/decisions.hpp"

namespace allocator {
namespace brain {
namespace {

// Prefix of labels that are for the sidecar.
const std::string OURS = "allocator.";

constexpr wire::SetAsideReason UNREADABLE = wire::SET_ASIDE_REASON_UNREADABLE;
constexpr wire::SetAsideReason TOO_LONG = wire::SET_ASIDE_REASON_TOO_LONG;
constexpr wire::SetAsideReason TOO_MANY = wire::SET_ASIDE_REASON_TOO_MANY;
constexpr wire::SetAsideReason TOO_DEEP = wire::SET_ASIDE_REASON_TOO_DEEP;
constexpr wire::SetAsideReason UNKNOWN = wire::SET_ASIDE_REASON_UNKNOWN;


std::string quote(const std::string& text)
{
  return "'" + toShown(text, ASIDE_QUOTE_BYTES_MAX) + "'";
}


std::string most(size_t bound, const char* what)
{
  return "at most " + std::to_string(bound) + " " + what + " are accepted";
}


// Sanitizes a text that is only displayed: truncates it if it is too long.
std::string informing(const char* field, const std::string& said, Aside* aside)
{
  std::string text = toText(said);
  if (text != said) {
    aside->add(
        field,
        said.size() > TEXT_BYTES_MAX ? TOO_LONG : UNREADABLE,
        quote(text) + " is shown instead");
  }
  return text;
}


// Removes duplicates and unspecified values.
template <typename Values>
void takeCapabilities(const Values& said, Values* taken)
{
  // Common case: nothing to do.
  const auto isNext = [](int one, int next) { return next <= one; };
  if (said.empty() ||
      (said.Get(0) > 0 &&
       std::adjacent_find(said.begin(), said.end(), isNext) == said.end())) {
    *taken = said;
    return;
  }

  std::set<int> known{0};
  for (int each : said) {
    if (known.insert(each).second) {
      taken->Add(each);
    }
  }
}


size_t left(size_t most, size_t taken)
{
  return most - std::min(most, taken);
}


// Drops oversized labels instead of cutting them, because a cut label could
// mean something else.
void takeLabels(const wire::Framework& said, Aside* aside, wire::Framework* to)
{
  size_t bytes = 0;

  // Sort: the choice of labels must not depend on their order.
  std::map<std::pair<bool, std::string>, const std::string*> sorted;
  for (const auto& label : said.labels()) {
    const bool others = label.first.compare(0, OURS.size(), OURS) != 0;
    sorted[std::make_pair(others, label.first)] = &label.second;
  }

  for (const auto& label : sorted) {
    const std::string& key = label.first.second;
    const std::string& value = *label.second;
    const size_t more = key.size() + value.size();

    if (std::max(key.size(), value.size()) > TEXT_BYTES_MAX) {
      aside->add("labels", TOO_LONG, quote(key) + " is too long");
    } else if (!isText(key) || !isText(value)) {
      aside->add("labels", UNREADABLE, quote(key) + " is not UTF-8");
    } else if (
        to->labels().size() >= LABELS_MAX || bytes + more > LABEL_BYTES_MAX) {
      aside->add(
          "labels", TOO_MANY, quote(key) + " exceeds the limits on labels");
    } else {
      (*to->mutable_labels())[key] = value;
      bytes += more;
    }
  }
}


void takeRoles(
    const std::set<std::string>& said,
    const Roles& roles,
    const Footprint& others,
    Newcomers newcomers,
    Aside* aside,
    FrameworkInput* input)
{
  std::map<std::string, size_t>* taken = &input->roles;
  size_t levelsLeft = LEVELS_OF_FRAMEWORK_MAX;
  size_t rolesLeft = left(ROLES_MAX, roles.count(Standing::SOUGHT));
  Footprint* footprint = &input->footprint;

  for (const std::string& role : said) {
    if (role.size() > ROLE_BYTES_MAX) {
      aside->add("roles", TOO_LONG, quote(role) + " gets no offers");
      continue;
    }
    if (!Roles::isPath(role)) {
      aside->add("roles", UNREADABLE, quote(role) + " is not a role path");
      continue;
    }
    if (taken->size() >= ROLES_OF_FRAMEWORK_MAX) {
      aside->add(
          "roles", TOO_MANY, most(ROLES_OF_FRAMEWORK_MAX, "of a framework"));
      continue;
    }

    const size_t depth = 1 + std::count(role.begin(), role.end(), '/');
    size_t levels = std::min(depth, ROLE_DEPTH_MAX);
    if (levels < depth) {
      aside->add(
          "roles",
          TOO_DEEP,
          quote(role) + " competes at level " + std::to_string(levels));
    }
    if (levels > levelsLeft) {
      aside->add(
          "roles",
          TOO_DEEP,
          quote(role) + " competes as a child of its top-level role");
      levels = std::min<size_t>(levels, 2);
    }

    const uint32_t number = roles.find(role);
    const size_t more = roles.lacking(role, levels);
    if (more > rolesLeft) {
      aside->add(
          "roles", TOO_MANY, quote(role) + " waits: there are too many roles");
      input->crowded = true;
      continue;
    }

    if (others.pairs + footprint->pairs >= PAIRS_OF_PRINCIPAL_MAX ||
        (more > 0 &&
         others.levels + footprint->levels + levels >
             LEVELS_OF_PRINCIPAL_MAX)) {
      aside->add(
          "roles",
          TOO_MANY,
          quote(role) + " waits: its principal (or user) has too many");
      input->crowded = true;
      continue;
    }

    if (!newcomers.mayCome && newcomers.before.count(number) == 0) {
      aside->add(
          "roles",
          TOO_MANY,
          quote(role) + " waits for the next interval: too many in this one");
      input->crowded = input->late = true;
      continue;
    }

    footprint->levels += levels;
    ++footprint->pairs;
    levelsLeft -= std::min(levels, levelsLeft);
    rolesLeft -= more;
    (*taken)[role] = levels;
  }
}


// Collects amounts by name: each name once, and none empty.
template <typename Each>
Quantities
takeQuantities(const char* field, size_t size, const Each& each, Aside* aside)
{
  std::map<std::string, int64_t> amounts;

  for (size_t i = 0; i < size; ++i) {
    const std::string& name = each(i).first;

    if (name.empty() || !isText(name)) {
      aside->add(field, UNREADABLE, quote(name) + " names no resource");
    } else if (name.size() > NAME_BYTES_MAX) {
      aside->add(field, TOO_LONG, quote(name) + " is too long for a name");
    } else {
      constexpr int64_t MOST = session::AMOUNT_MAX;
      const int64_t more = std::max<int64_t>(0, each(i).second);
      int64_t& amount = amounts[name];
      amount += std::min(more, MOST - amount);
    }
  }

  return Quantities(amounts.begin(), amounts.end());
}


// Ignores an alternative that is too long to be met.
std::vector<Quantities> takeAlternatives(
    const std::vector<Quantities>& said,
    Aside* aside,
    size_t* namesLeft)
{
  const char* const field = "offer_filters";
  std::vector<Quantities> taken;

  for (const Quantities& each : said) {
    if (taken.size() >= ALTERNATIVES_MAX) {
      aside->add(
          field, TOO_MANY, most(ALTERNATIVES_MAX, "alternatives of a role"));
      break;
    }
    if (each.size() > std::min(ALTERNATIVE_NAMES_MAX, *namesLeft)) {
      aside->add(
          field, TOO_MANY, most(ALTERNATIVE_NAMES_MAX, "names in total"));
      continue;
    }

    const size_t before = aside->count();
    const Quantities least = takeQuantities(
        field, each.size(), [&](size_t i) { return each[i]; }, aside);

    // Keep the alternative only if it is complete: a reduced one would require
    // less.
    if (aside->count() == before) {
      *namesLeft -= least.size();
      taken.push_back(least);
    }
  }

  return taken;
}


void takeMinimum(const AddFramework& said, Aside* aside, FrameworkInput* taken)
{
  size_t namesLeft = MINIMUM_NAMES_MAX;

  for (const auto& entry : said.minimum) {
    if (taken->roles.count(entry.first) == 0) {
      aside->add(
          "offer_filters",
          UNKNOWN,
          quote(entry.first) + " is not one of its accepted roles");
      continue;
    }

    std::vector<Quantities> anyOf =
        takeAlternatives(entry.second, aside, &namesLeft);

    // If every alternative was ignored, act as if no minimum was given; an
    // empty list means that any offer suffices.
    if (!anyOf.empty() || entry.second.empty()) {
      taken->minimum[entry.first] = std::move(anyOf);
    }
  }
}


void takeAttributes(const wire::Agent& said, Aside* aside, wire::Agent* taken)
{
  const char* const field = "attributes";
  size_t bytes = 0;

  for (const wire::Attribute& attribute : said.attributes()) {
    if (attribute.name().empty()) {
      aside->add(field, UNREADABLE, "an attribute has no name");
      continue;
    }

    wire::Attribute each;
    each.set_name(toText(attribute.name()));
    each.set_value(toText(attribute.value()));
    each.set_type(attribute.type());
    bytes += each.name().size() + each.value().size();

    if (size_t(taken->attributes_size()) >= ATTRIBUTES_MAX ||
        bytes > ATTRIBUTE_BYTES_MAX) {
      aside->add(
          field,
          TOO_MANY,
          most(ATTRIBUTES_MAX, "attributes") + ", of at most " +
              std::to_string(ATTRIBUTE_BYTES_MAX) + " bytes");
      break;
    }

    if (each.name() != attribute.name() || each.value() != attribute.value()) {
      aside->add(
          field, UNREADABLE, quote(each.name()) + " is not shown exactly");
    }
    taken->add_attributes()->Swap(&each);
  }
}


void keepFirst(Aside::Rows* rows)
{
  while (rows->size() > 1) {
    rows->RemoveLast();
  }
}


// Reports that a field was not sent to the sidecar.
void reportDropped(const char* field, size_t bytesMax, Aside::Rows* rows)
{
  Aside aside;
  aside.add(
      field,
      TOO_LONG,
      "not sent to a sidecar that reads at most " + std::to_string(bytesMax) +
          " bytes");
  append(aside, rows);
}


template <typename Message>
void fitAgent(size_t bytesMax, Message* message)
{
  if (message->attributes_size() > 0 && message->ByteSizeLong() > bytesMax) {
    message->clear_attributes();
    reportDropped("attributes", bytesMax, message->mutable_set_aside());
  }

  if (message->ByteSizeLong() > bytesMax) {
    keepFirst(message->mutable_set_aside());
  }
}

} // namespace {


void Aside::add(
    const char* field,
    wire::SetAsideReason reason,
    const std::string& text)
{
  ++all;

  for (Row& row : kept) {
    if (row.reason == reason && std::string(row.field) == field) {
      ++row.count;
      return;
    }
  }

  kept.push_back(Row{field, reason, text, 1});
}


Aside::Rows Aside::rows() const
{
  Rows result;

  for (const Row& row : kept) {
    if (size_t(result.size()) >= ASIDE_ROWS_MAX) {
      break;
    }
    wire::SetAside* message = result.Add();
    message->set_field(row.field);
    message->set_reason(row.reason);
    const std::string more = row.count == 1
        ? std::string()
        : "; " + std::to_string(row.count) + " in all";
    message->set_text(toShown(row.text + more, ASIDE_TEXT_BYTES_MAX));
  }

  return result;
}


void append(const Aside& aside, Aside::Rows* rows)
{
  for (const wire::SetAside& row : aside.rows()) {
    if (size_t(rows->size()) >= ASIDE_ROWS_MAX) {
      rows->RemoveLast();
    }
    *rows->Add() = row;
  }
}


std::string payerOf(const wire::Framework& said)
{
  return said.principal().empty() ? "user " + said.user()
                                  : "principal " + said.principal();
}


FrameworkInput takeFramework(
    const AddFramework& said,
    const Roles& roles,
    const Footprint& others,
    Newcomers newcomers,
    Aside* aside)
{
  FrameworkInput taken;
  taken.info.set_name(informing("name", said.info.name(), aside));
  taken.info.set_user(informing("user", said.info.user(), aside));
  taken.info.set_principal(
      informing("principal", said.info.principal(), aside));
  takeCapabilities(said.info.capabilities(), taken.info.mutable_capabilities());
  takeLabels(said.info, aside, &taken.info);
  takeRoles(said.roles, roles, others, newcomers, aside, &taken);

  for (const std::string& role : said.suppressed) {
    if (taken.roles.count(role) > 0) {
      taken.suppressed.insert(role);
    } else if (said.roles.count(role) == 0) {
      aside->add(
          "suppressed_roles",
          UNKNOWN,
          quote(role) + " is not one of its roles");
    }
  }

  takeMinimum(said, aside, &taken);
  *taken.info.mutable_set_aside() = aside->rows();
  return taken;
}


wire::Agent takeAgent(const wire::Agent& said, Aside* aside)
{
  wire::Agent taken;
  taken.set_hostname(informing("hostname", said.hostname(), aside));
  takeCapabilities(said.capabilities(), taken.mutable_capabilities());
  takeAttributes(said, aside, &taken);

  if (said.has_domain()) {
    wire::Domain* domain = taken.mutable_domain();
    domain->set_region(informing("domain", said.domain().region(), aside));
    domain->set_zone(informing("domain", said.domain().zone(), aside));
  }

  *taken.mutable_set_aside() = aside->rows();
  return taken;
}


wire::ResourceRequest takeRequest(
    const wire::ResourceRequest& said,
    Aside* aside)
{
  const char* const field = "request";
  wire::ResourceRequest taken;
  size_t bytes = 0;
  bool anyAgent = true;

  for (int row = 0; row < said.requests_size(); ++row) {
    const wire::Quantities& request = said.requests(row);
    const std::string agent =
        row < said.agent_id_size() ? said.agent_id(row) : std::string();
    if (size_t(taken.requests_size()) >= REQUESTS_MAX ||
        size_t(request.name_size()) > REQUEST_RESOURCES_MAX) {
      aside->add(
          field,
          TOO_MANY,
          most(REQUESTS_MAX, "entries") + ", of at most " +
              std::to_string(REQUEST_RESOURCES_MAX) + " resources");
      continue;
    }

    if (agent.size() > TEXT_BYTES_MAX || !isText(agent)) {
      aside->add(field, UNREADABLE, quote(agent) + " is not an agent id");
      continue;
    }

    const Quantities amounts = takeQuantities(
        field,
        std::min(request.name_size(), request.amount_size()),
        [&](size_t i) {
          return std::pair<const std::string&, int64_t>(
              request.name(int(i)), request.amount(int(i)));
        },
        aside);

    bytes += agent.size();
    for (const auto& entry : amounts) {
      bytes += entry.first.size() + sizeof(entry.second);
    }
    if (bytes > REQUEST_BYTES_MAX) {
      aside->add(field, TOO_LONG, "it is too long in total");
      break;
    }

    anyAgent = anyAgent && agent.empty();
    taken.add_agent_id(agent);
    wire::Quantities* quantities = taken.add_requests();
    for (const auto& entry : amounts) {
      if (entry.second > 0) {
        quantities->add_name(entry.first);
        quantities->add_amount(entry.second);
      }
    }
  }

  if (anyAgent) {
    taken.clear_agent_id();
  }
  *taken.mutable_set_aside() = aside->rows();
  return taken;
}


size_t constrainedRoles(size_t agents)
{
  return std::max<size_t>(
      1, CONSTRAINT_PAIRS_MAX / std::max<size_t>(1, agents));
}


void fit(size_t bytesMax, wire::Framework* message)
{
  if (message->labels_size() > 0 && message->ByteSizeLong() > bytesMax) {
    message->clear_labels();
    reportDropped("labels", bytesMax, message->mutable_set_aside());
  }

  if (message->minimum_size() > 0 && message->ByteSizeLong() > bytesMax) {
    message->clear_minimum();
    reportDropped("offer_filters", bytesMax, message->mutable_set_aside());
  }

  if (message->ByteSizeLong() > bytesMax) {
    message->clear_principal();
    message->clear_user();
    keepFirst(message->mutable_set_aside());
  }
}


void fit(size_t bytesMax, wire::Agent* message)
{
  fitAgent(bytesMax, message);
}


void fit(size_t bytesMax, wire::UpdateAgent* message)
{
  fitAgent(bytesMax, message);
}


void fit(size_t bytesMax, wire::ResourceRequest* message)
{
  if (message->requests_size() > 0 && message->ByteSizeLong() > bytesMax) {
    message->clear_requests();
    message->clear_agent_id();
    reportDropped("request", bytesMax, message->mutable_set_aside());
  }
}


std::string describe(const Aside::Rows& rows)
{
  std::string result;
  for (const wire::SetAside& row : rows) {
    result += (result.empty() ? "" : "; ") + row.field() + ": " + row.text();
  }
  return result;
}

} // namespace brain {
} // namespace allocator {
