#include "adapter/builtin_metrics.hpp"

#include <iterator>
#include <utility>

#include <process/defer.hpp>
#include <process/future.hpp>
#include <process/metrics/metrics.hpp>

#include "adapter/attempt.hpp"

#include "brain/deciding/competition.hpp"

using std::set;
using std::string;
using std::vector;

using process::Future;

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
    const process::UPID& _actor,
    const std::function<double()>& dispatches,
    const brain::Cluster& _books)
  : actor(_actor),
    books(_books),
    runs(string(PREFIX) + "allocation_runs"),
    run(string(PREFIX) + "allocation_run", Hours(1)),
    latency(string(PREFIX) + "allocation_run_latency", Hours(1))
{
  const brain::Cluster* b = &books;
  cluster.push_back(pull("event_queue_dispatches", dispatches));

  // Its name before Mesos 1.0, which Mesos still publishes.
  cluster.emplace_back(
      "allocator/event_queue_dispatches",
      process::defer(actor, [=]() { return answer<double>(dispatches); }));
  process::metrics::add(cluster.back());

  // Always shown, whatever agents have.
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

  for (auto& role : byRole) {
    remove(&role.second);
  }

  for (auto& role : used) {
    remove(&role.second);
  }

  for (const auto& role : quotas) {
    for (const Push& gauge : role.second) {
      process::metrics::remove(gauge);
    }
  }

  for (const auto& framework : suppressed) {
    for (const auto& role : framework.second) {
      process::metrics::remove(role.second);
    }
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
      byRole[role] = {
          pull(
              "roles/" + role + "/shares/dominant",
              [=]() {
                const uint32_t number = b->roles.find(role);
                return brain::dominantShare(*b, b->sums.atRole(number)) /
                    brain::weightOf(*b, role);
              }),
          pull("offer_filters/roles/" + role + "/active", [=]() {
            return double(b->filters.countOf(b->roles.find(role)));
          })};
    }
  }

  for (const string& role : before) {
    if (roles.count(role) == 0 && --subscribers[role] == 0) {
      remove(&byRole[role]);
      byRole.erase(role);
      subscribers.erase(role);
    }
  }
}


void BuiltinMetrics::setSuppressed(
    const string& framework,
    const std::map<string, bool>& roles)
{
  std::map<string, Push>& gauges = suppressed[framework];

  for (auto gauge = gauges.begin(); gauge != gauges.end();) {
    const bool gone = roles.count(gauge->first) == 0;
    if (gone) {
      process::metrics::remove(gauge->second);
    }
    gauge = gone ? gauges.erase(gauge) : std::next(gauge);
  }

  for (const auto& role : roles) {
    auto gauge = gauges.find(role.first);
    if (gauge == gauges.end()) {
      gauge = gauges
                  .emplace(
                      role.first,
                      Push(framework + "roles/" + role.first + "/suppressed"))
                  .first;
      process::metrics::add(gauge->second);
    }
  }
  updateSuppressed(framework, roles);

  if (gauges.empty()) {
    suppressed.erase(framework);
  }
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


void BuiltinMetrics::setQuota(const string& role, const mesos::Quota& quota)
{
  for (const Push& gauge : quotas[role]) {
    process::metrics::remove(gauge);
  }

  remove(&used[role]);
  quotas.erase(role);
  used.erase(role);

  set<string> names;

  const auto show = [&](const string& name, const char* what, double amount) {
    names.insert(name);
    vector<Push>& gauges = quotas[role];
    gauges.emplace_back(PREFIX + quotaName(role, name) + what);
    gauges.back() = amount;
    process::metrics::add(gauges.back());
  };

  for (const auto& quantity : quota.guarantees) {
    show(quantity.first, "guarantee", quantity.second.value());
  }

  for (const auto& quantity : quota.limits) {
    show(quantity.first, "limit", quantity.second.value());
  }

  const brain::Cluster* b = &books;

  for (const string& name : names) {
    const string resource = quotaName(role, name);
    used[role].push_back(pull(resource + "offered_or_allocated", [=]() {
      return scalarOf(*b, b->sums.atRole(b->roles.find(role)), name);
    }));
    used[role].push_back(pull(resource + "consumed", [=]() {
      return scalarOf(*b, b->sums.consumed(b->roles.find(role)), name);
    }));
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
  // A run begun by the clock did not wait.
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
  const std::function<Future<double>()> ask =
      process::defer(actor, [read]() { return answer<double>(read); });

  Pull gauge(PREFIX + name, ask);
  process::metrics::add(gauge);
  return gauge;
}


void BuiltinMetrics::remove(vector<Pull>* gauges)
{
  for (const Pull& gauge : *gauges) {
    process::metrics::remove(gauge);
  }

  gauges->clear();
}

} // namespace adapter {
} // namespace allocator {
