#include "adapter/builtin_metrics.hpp"

#include <iterator>
#include <utility>

#include <process/metrics/metrics.hpp>

#include "brain/deciding/competition.hpp"

using std::set;
using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

const char PREFIX[] = "allocator/mesos/";


double scalarOf(
    const brain::Cluster& books,
    const brain::Amounts& amounts,
    const string& name)
{
  for (const auto& entry : amounts) {
    if (books.classes.names.name(entry.first) == name) {
      return entry.second / 1000.0;
    }
  }

  return 0.0;
}


string quotaName(const string& role, const string& name)
{
  return "quota/roles/" + role + "/resources/" + name + "/";
}

} // namespace {


BuiltinMetrics::BuiltinMetrics(
    Gauges* _gauges,
    const std::function<double()>& dispatches,
    const brain::Cluster& _books)
  : consumption(
        _books,
        [this](const string& role, bool any) {
          any ? know(role) : ignore(role);
        }),
    gauges(_gauges),
    books(_books),
    runs(string(PREFIX) + "allocation_runs"),
    run(string(PREFIX) + "allocation_run", Hours(1)),
    latency(string(PREFIX) + "allocation_run_latency", Hours(1))
{
  const brain::Cluster* b = &books;
  cluster.push_back(pull("event_queue_dispatches", dispatches));

  // The metric's name before Mesos 1.0, which Mesos still publishes.
  cluster.push_back(
      gauges->make("allocator/event_queue_dispatches", dispatches));

  // Always shown, even if no agent has such resources.
  for (const string name : {"cpus", "mem", "disk"}) {
    const string resource = "resources/" + name + "/";
    cluster.push_back(pull(resource + "total", [=]() {
      return scalarOf(*b, b->sums.total(), name);
    }));
    cluster.push_back(pull(resource + "offered_or_allocated", [=]() {
      return scalarOf(*b, b->sums.held(), name);
    }));
  }

  process::metrics::add(runs);
  process::metrics::add(run);
  process::metrics::add(latency);
}


BuiltinMetrics::~BuiltinMetrics()
{
  remove(&cluster);

  for (const auto& role : shares) {
    process::metrics::remove(role.second);
  }

  for (const auto& role : filters) {
    process::metrics::remove(role.second.gauge);
  }

  for (auto& role : used) {
    remove(&role.second);
  }

  for (const auto& role : quotas) {
    for (const Push& gauge : role.second) {
      process::metrics::remove(gauge);
    }
  }

  while (!suppressed.empty()) {
    removeSuppressed(suppressed.begin()->first);
  }

  process::metrics::remove(runs);
  process::metrics::remove(run);
  process::metrics::remove(latency);
}


void BuiltinMetrics::subscribe(
    const set<string>& before,
    const set<string>& roles)
{
  const brain::Cluster* b = &books;

  for (const string& role : roles) {
    if (before.count(role) == 0 && ++subscribers[role] == 1) {
      know(role);
      shares.emplace(role, pull("roles/" + role + "/shares/dominant", [=]() {
                       const uint32_t number = b->roles.find(role);
                       return brain::dominantShare(*b, b->sums.atRole(number)) /
                           brain::weightOf(*b, role);
                     }));
    }
  }

  for (const string& role : before) {
    if (roles.count(role) == 0 && --subscribers[role] == 0) {
      process::metrics::remove(shares.at(role));
      shares.erase(role);
      subscribers.erase(role);
      ignore(role);
    }
  }
}


void BuiltinMetrics::know(const string& role)
{
  const auto found = filters.find(role);
  if (found != filters.end()) {
    ++found->second.reasons;
    return;
  }

  const brain::Cluster* b = &books;
  const string parent = parentOf(books.roles, role);
  filters.emplace(
      role,
      Filters{1, parent, pull("offer_filters/roles/" + role + "/active", [=]() {
                return double(b->filters.countOf(b->roles.find(role)));
              })});

  if (!parent.empty()) {
    know(parent);
  }
}


void BuiltinMetrics::ignore(const string& role)
{
  const auto found = filters.find(role);
  if (found == filters.end() || --found->second.reasons > 0) {
    return;
  }

  const string parent = found->second.parent;
  process::metrics::remove(found->second.gauge);
  filters.erase(found);

  if (!parent.empty()) {
    ignore(parent);
  }
}


void BuiltinMetrics::setSuppressed(
    const string& framework,
    const std::map<string, bool>& roles)
{
  std::map<string, Push>& byRole = suppressed[framework];

  for (auto gauge = byRole.begin(); gauge != byRole.end();) {
    const bool gone = roles.count(gauge->first) == 0;
    if (gone) {
      process::metrics::remove(gauge->second);
    }
    gauge = gone ? byRole.erase(gauge) : std::next(gauge);
  }

  for (const auto& role : roles) {
    auto gauge = byRole.find(role.first);
    if (gauge == byRole.end()) {
      gauge = byRole
                  .emplace(
                      role.first,
                      Push(framework + "roles/" + role.first + "/suppressed"))
                  .first;
      process::metrics::add(gauge->second);
    }
  }
  updateSuppressed(framework, roles);
}


void BuiltinMetrics::updateSuppressed(
    const string& framework,
    const std::map<string, bool>& roles)
{
  const auto found = suppressed.find(framework);
  if (found == suppressed.end()) {
    return;
  }

  for (const auto& role : roles) {
    const auto gauge = found->second.find(role.first);
    if (gauge != found->second.end()) {
      gauge->second = role.second ? 1.0 : 0.0;
    }
  }
}


void BuiltinMetrics::complete(const string& framework, size_t most)
{
  completed.push_back(framework);

  while (completed.size() > most) {
    removeSuppressed(completed.front());
    completed.pop_front();
  }
}


void BuiltinMetrics::removeSuppressed(const string& framework)
{
  const auto found = suppressed.find(framework);
  if (found != suppressed.end()) {
    for (const auto& role : found->second) {
      process::metrics::remove(role.second);
    }
    suppressed.erase(found);
  }
}


void BuiltinMetrics::setWeight(const string& role, double weight)
{
  // Mesos's default weight is 1.
  if (weight == 1.0 ? weighted.erase(role) > 0 : weighted.insert(role).second) {
    weight == 1.0 ? ignore(role) : know(role);
  }
}


void BuiltinMetrics::setQuota(const string& role, const mesos::Quota& quota)
{
  const bool had = quotas.count(role) > 0;
  for (const Push& gauge : quotas[role]) {
    process::metrics::remove(gauge);
  }

  remove(&used[role]);
  quotas.erase(role);
  used.erase(role);

  set<string> names;

  const auto show = [&](const string& name, const char* what, double amount) {
    names.insert(name);
    vector<Push>& each = quotas[role];
    each.emplace_back(PREFIX + quotaName(role, name) + what);
    each.back() = amount;
    process::metrics::add(each.back());
  };

  for (const auto& quantity : quota.guarantees) {
    show(quantity.first, "guarantee", quantity.second.value());
  }

  for (const auto& quantity : quota.limits) {
    show(quantity.first, "limit", quantity.second.value());
  }

  const brain::Cluster* b = &books;

  for (const string& name : names) {
    used[role].push_back(
        pull(quotaName(role, name) + "offered_or_allocated", [=]() {
          return scalarOf(*b, b->sums.atRole(b->roles.find(role)), name);
        }));
  }

  if (had != !names.empty()) {
    had ? ignore(role) : know(role);
  }
}


void BuiltinMetrics::runDue()
{
  if (!due) {
    due = true;
    latency.start();
  }
}


void BuiltinMetrics::runBegins()
{
  // A run that an interval begins was not requested and has not waited.
  runDue();
  due = false;
  latency.stop();
  ++runs;

  if (!running) {
    running = true;
    run.start();
  }
}


void BuiltinMetrics::runEnds()
{
  if (running) {
    running = false;
    run.stop();
  }
}


BuiltinMetrics::Pull BuiltinMetrics::pull(
    const string& name,
    const std::function<double()>& read)
{
  return gauges->make(PREFIX + name, read);
}


void BuiltinMetrics::remove(vector<Pull>* some)
{
  for (const Pull& gauge : *some) {
    process::metrics::remove(gauge);
  }

  some->clear();
}

} // namespace adapter {
} // namespace allocator {
