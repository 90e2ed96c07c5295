#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <process/process.hpp>

#include <stout/numify.hpp>
#include <stout/os.hpp>
#include <stout/stopwatch.hpp>
#include <stout/strings.hpp>

#include "adapter/allocator.hpp"

#include "tests/adapter/driver_master.hpp"

// Compares this allocator, with a real sidecar and without one, with Mesos's
// built-in allocator: in this process, through the same interface, one after
// the other. Prints how long each took, also relative to the built-in one.
//
//     driver --target unix:/run/sidecar.sock --sizes 1000x100,10000x1000
//
//     --target   the sidecar's address; its loops should be compiled
//     --sidecar  a sidecar program to start with `serve --listen ...`
//     --sizes    agents x frameworks, or agents x frameworks x roles
//     --rounds   repetitions; the shortest time counts
//     --only     some of "sidecar,fallback,built-in" (default: all)
//     --measure  "times" (default), "prices" or "loop"
//     --intervals  of "loop", in milliseconds (default: 20,1000)
//
// "prices" runs all actors in one thread, and measures what each step costs
// this thread and the caller, in processor time and calls of `new`. "loop"
// declines all offers as soon as every agent has been offered, again and again,
// while cycles run at an interval. It measures how long each round takes, and
// who decided it.

namespace allocator {
namespace driver {
namespace {

// What decides: the sidecar, the module alone, or the built-in allocator.
enum class Who
{
  SIDECAR,
  FALLBACK,
  BUILT_IN,
};

const std::map<std::string, Who> NAMES = {
    {"sidecar", Who::SIDECAR},
    {"fallback", Who::FALLBACK},
    {"built-in", Who::BUILT_IN},
};


enum class Measure
{
  TIMES,
  PRICES,
  LOOP,
};

const std::map<std::string, Measure> MEASURES = {
    {"times", Measure::TIMES},
    {"prices", Measure::PRICES},
    {"loop", Measure::LOOP},
};


struct Settings
{
  std::string target;
  std::string sidecar;
  std::set<Who> only{Who::SIDECAR, Who::FALLBACK, Who::BUILT_IN};
  Measure measure = Measure::TIMES;
  std::vector<size_t> intervalsMs{20, 1000};
  std::vector<Size> sizes{{1000, 100, 1}, {10000, 1000, 1}};
  int rounds = 3;
};


[[noreturn]] void fail(const std::string& message)
{
  std::cerr << "driver: " << message << std::endl;
  exit(2);
}


// Parses positive numbers; returns none if any is invalid.
std::vector<size_t> parseNumbers(
    const std::string& text,
    const std::string& separator)
{
  std::vector<size_t> numbers;
  for (const std::string& each : strings::split(text, separator)) {
    const Try<size_t> number = numify<size_t>(each);
    if (number.isError() || number.get() == 0) {
      return {};
    }
    numbers.push_back(number.get());
  }
  return numbers;
}


std::vector<Size> parseSizes(const std::string& text)
{
  std::vector<Size> sizes;

  for (const std::string& each : strings::split(text, ",")) {
    const std::vector<size_t> numbers = parseNumbers(each, "x");
    if (numbers.size() < 2 || numbers.size() > 3) {
      fail("--sizes has '" + each + "'; write it like 1000x100");
    }

    sizes.push_back(
        Size{numbers[0], numbers[1], numbers.size() == 3 ? numbers[2] : 1});
  }

  return sizes;
}


std::set<Who> parseOnly(const std::string& text)
{
  std::set<Who> only;
  for (const std::string& each : strings::split(text, ",")) {
    auto name = NAMES.find(each);
    if (name == NAMES.end()) {
      fail("--only has '" + each + "'; write it like sidecar,fallback");
    }
    only.insert(name->second);
  }
  return only;
}


Settings parseArguments(int argc, char** argv)
{
  Settings settings;

  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) {
      fail(name + " needs a value");
    }

    const std::string value = argv[i + 1];
    if (name == "--target") {
      settings.target = value;
    } else if (name == "--sidecar") {
      settings.sidecar = value;
    } else if (name == "--only") {
      settings.only = parseOnly(value);
    } else if (name == "--measure") {
      auto measure = MEASURES.find(value);
      if (measure == MEASURES.end()) {
        fail("--measure is '" + value + "'; choose times, prices or loop");
      }
      settings.measure = measure->second;
    } else if (name == "--intervals") {
      settings.intervalsMs = parseNumbers(value, ",");
      if (settings.intervalsMs.empty()) {
        fail("--intervals has '" + value + "'; write it like 20,1000");
      }
    } else if (name == "--sizes") {
      settings.sizes = parseSizes(value);
    } else if (name == "--rounds") {
      settings.rounds = std::max(1, atoi(value.c_str()));
    } else {
      fail("unknown option " + name);
    }
  }

  if (settings.only.count(Who::SIDECAR) > 0 &&
      settings.target.empty() == settings.sidecar.empty()) {
    fail("give either --target or --sidecar");
  }

  return settings;
}


// A sidecar process, which ends with this process.
class Sidecar
{
public:
  Sidecar(const std::string& program, const std::string& target)
  {
    pid = fork();
    if (pid == 0) {
      execlp(
          program.c_str(),
          program.c_str(),
          "serve",
          "--listen",
          target.c_str(),
          "--http-port",
          "0",
          static_cast<char*>(nullptr));
      _exit(127);
    }
  }

  ~Sidecar()
  {
    kill(pid, SIGTERM);
    waitpid(pid, nullptr, 0);
  }

private:
  friend int64_t spentNs();

  pid_t pid;
};


std::unique_ptr<Sidecar> sidecar;


// Processor time of this program and the sidecar it started.
int64_t spentNs()
{
  clockid_t clock;
  timespec time;
  const bool has = sidecar != nullptr &&
      clock_getcpuclockid(sidecar->pid, &clock) == 0 &&
      clock_gettime(clock, &time) == 0;
  return processNs() +
      (has ? int64_t(time.tv_sec) * 1000000000 + time.tv_nsec : 0);
}


// Waits until the sidecar's loops are compiled. Before that it answers many
// times slower.
bool waitForLoops(const std::string& program, const std::string& target)
{
  const std::string command =
      program + " status --json --target " + target + " 2>/dev/null";

  for (int i = 0; i < 60; ++i) {
    const Try<std::string> status = os::shell(command);
    if (status.isSome() &&
        strings::contains(status.get(), "\"loops_state\": \"compiled\"")) {
      return true;
    }
    sleep(1);
  }

  return false;
}


Time timeOf(const std::function<void()>& work)
{
  const int64_t before = spentNs();
  Stopwatch watch;
  watch.start();
  work();
  const double elapsed = watch.elapsed().secs();
  return Time{elapsed, static_cast<double>(spentNs() - before) / 1e9};
}


Time min(const Time& one, const Time& other)
{
  return Time{
      std::min(one.elapsed, other.elapsed), std::min(one.spent, other.spent)};
}


void require(bool done, const char* what)
{
  if (!done) {
    fail(std::string("not every agent was offered within a minute: ") + what);
  }
}


// The minimum of several rounds, after one to warm up.
Time least(int rounds, const std::function<Time()>& round)
{
  round();
  Time best = round();
  for (int i = 1; i < rounds; ++i) {
    best = min(best, round());
  }
  return best;
}


void waitForSession(Who who)
{
  if (who == Who::SIDECAR && !waitForMetric("allocator/sidecar/connected", 1)) {
    fail("no session with the sidecar within a minute");
  }
}


void requireSidecar(Who who)
{
  if (who == Who::SIDECAR &&
      !waitForMetric("allocator/sidecar/fallback_cycles", 0)) {
    fail("the module decided itself: the sidecar was too slow or absent");
  }
}


Time populate(Master* master, Who who)
{
  waitForSession(who);
  return timeOf([&]() { require(master->populate(), "add"); });
}


Times play(Master* master, int rounds, Who who)
{
  Times times;

  times.decline = least(rounds, [&]() {
    const Time result = timeOf([&]() {
      master->decline(None());
      master->barrier();
    });
    require(master->offerAll(), "decline");
    return result;
  });

  times.reoffer = least(rounds, [&]() {
    return timeOf([&]() { require(master->reoffer(None()), "reoffer"); });
  });

  times.events = least(rounds, [&]() {
    const Time result = timeOf([&]() {
      times.eventCount = master->accept() + master->end();
      master->barrier();
    });
    require(master->offerAll(), "events");
    return result;
  });

  mesos::Filters filters;
  filters.set_refuse_seconds(3600);
  times.refuse = least(rounds, [&]() {
    return timeOf([&]() { require(master->reoffer(filters), "refuse"); });
  });

  requireSidecar(who);
  return times;
}


// Prints a row of the table. Allocators that were not measured have no times.
void printRow(
    const char* what,
    const std::map<Who, Times>& all,
    const std::function<double(const Times&)>& read)
{
  const auto figure = [&](Who who) {
    return all.count(who) > 0 ? read(all.at(who)) : 0;
  };
  const double served = figure(Who::SIDECAR);
  const double alone = figure(Who::FALLBACK);
  const double builtIn = figure(Who::BUILT_IN);

  printf(
      "  %-34s %10.4f %6.2f %10.4f %6.2f %10.4f\n",
      what,
      served,
      served / builtIn,
      alone,
      alone / builtIn,
      builtIn);
}


void print(const Size& size, const std::map<Who, Times>& all)
{
  printf(
      "%zu agents, %zu frameworks, %zu roles\n"
      "  %-34s %10s %6s %10s %6s %10s\n",
      size.agents,
      size.frameworks,
      size.roles,
      "",
      "sidecar",
      "ratio",
      "fallback",
      "ratio",
      "built-in");

  const auto row = [&](const char* what, Time Times::*time) {
    printRow(
        what, all, [=](const Times& times) { return (times.*time).elapsed; });
    printRow("  of the processor", all, [=](const Times& times) {
      return (times.*time).spent;
    });
  };
  row("add all, until all is offered, s", &Times::add);
  row("decline all, until booked, s", &Times::decline);
  row("decline all, until reoffered, s", &Times::reoffer);
  row("the same with filters, s", &Times::refuse);
  row("accept and end all, booked, s", &Times::events);
  printRow("  events/s", all, [](const Times& times) {
    return times.eventCount / times.events.elapsed;
  });
  printRow("  us/offer, reoffered", all, [&](const Times& times) {
    return times.reoffer.elapsed / size.agents * 1e6;
  });
  fflush(stdout);
}


std::unique_ptr<mesos::allocator::Allocator> create(
    const Settings& settings,
    Who who)
{
  session::Parameters parameters;
  parameters.transport.channel.target = who == Who::SIDECAR
      ? settings.target
      : "unix:/tmp/driver-" + std::to_string(getpid()) + "-nobody.sock";

  // Keep the default deadlines for "loop", because they determine who decides.
  if (settings.measure != Measure::LOOP) {
    parameters.fallbackAfter = session::Duration(60000);
    parameters.deadlines.answer = session::Duration(60000);
  }

  if (who != Who::BUILT_IN) {
    return makeAllocator(parameters);
  }
  return std::unique_ptr<mesos::allocator::Allocator>(
      mesos::allocator::Allocator::create("HierarchicalDRF", "drf", "drf")
          .get());
}


Times run(const Settings& settings, const Size& size, Who who)
{
  // Each measurement of adding needs a new master. The last master is kept for
  // the other steps.
  const Time before = least(settings.rounds - 1, [&]() {
    const auto allocator = create(settings, who);
    Master master(allocator.get(), size);
    return populate(&master, who);
  });

  std::unique_ptr<mesos::allocator::Allocator> allocator =
      create(settings, who);
  Master master(allocator.get(), size);
  const Time last = populate(&master, who);

  Times times = play(&master, settings.rounds, who);
  times.add = min(before, last);
  return times;
}


// Decisions of the sidecar that have become offers.
size_t offeredBySidecar()
{
  double sum = 0;
  for (const char* name : {"offered", "partial"}) {
    sum += readMetric(std::string("allocator/sidecar/outcomes/") + name)
               .getOrElse(0);
  }
  return static_cast<size_t>(sum);
}


const char* decider(size_t bySidecar, size_t offers)
{
  return bySidecar >= offers ? "sidecar" : bySidecar == 0 ? "module" : "both";
}


// Measures "loop". The first row shows the first offers, before any decline.
void loop(
    const Settings& settings,
    const Size& size,
    const std::string& name,
    Who who,
    size_t intervalMs)
{
  const auto allocator = create(settings, who);
  Master master(allocator.get(), size, Milliseconds(intervalMs));
  waitForSession(who);

  printf(
      "%s, %zu agents, %zu frameworks, %zu roles, a cycle each %zu ms\n"
      "  %-8s %8s %12s %8s %11s  %s\n",
      name.c_str(),
      size.agents,
      size.frameworks,
      size.roles,
      intervalMs,
      "round",
      "s",
      "processor, s",
      "offers",
      "by sidecar",
      "decided by");

  int whole = 0;
  size_t before = offeredBySidecar();

  for (int round = 0; round <= settings.rounds; ++round) {
    const Time time = timeOf([&]() {
      if (round == 0) {
        require(master.populate(), "add");
      } else {
        master.decline(None());
        require(master.awaitAll(), "loop");
      }
    });

    if (round == 0 && who == Who::SIDECAR) {
      Stopwatch watch;
      watch.start();
      if (!waitForMetric("allocator/sidecar/unanswered", 0)) {
        fail("the sidecar did not answer everything within a minute");
      }
      printf(
          "  caught up %.2f s after the first offers\n",
          watch.elapsed().secs());
    }

    const size_t offers = master.held();
    const size_t now = offeredBySidecar();
    const char* by = who == Who::SIDECAR ? decider(now - before, offers) : "-";
    printf(
        "  %-8s %8.3f %12.3f %8zu %11zu  %s\n",
        round == 0 ? "first" : std::to_string(round).c_str(),
        time.elapsed,
        time.spent,
        offers,
        now - before,
        by);
    before = now;
    whole += round > 0 && std::string(by) == "sidecar" ? 1 : 0;
  }

  if (who == Who::SIDECAR) {
    printf("  the sidecar decided %d of %d rounds\n", whole, settings.rounds);
  }
  fflush(stdout);
}


// The steps of the price table, and how often each is taken.
using Step = std::pair<const char*, std::function<void(Master*)>>;


void printPrices(
    const char* what,
    size_t count,
    const Spent& before,
    const Spent& after)
{
  const auto each = [&](int64_t amount) {
    return static_cast<double>(amount) / static_cast<double>(count);
  };
  const Price caller = after.caller - before.caller;
  const Price actor = after.actor - before.actor;

  printf(
      "  %-26s %8.2f %6.1f %10.2f %6.1f %8.2f\n",
      what,
      each(caller.ns) / 1e3,
      each(caller.allocations),
      each(actor.ns) / 1e3,
      each(actor.allocations),
      each(after.othersNs - before.othersNs) / 1e3);
}


// Measures several rounds, and prints the one that is cheapest for the
// allocator.
void priceAll(
    const Settings& settings,
    const Size& size,
    const std::string& name,
    Who who)
{
  mesos::Filters filters;
  filters.set_refuse_seconds(3600);

  const auto offer = [](Master* master) {
    require(master->offerAll(), "prices");
  };

  const std::vector<Step> once = {
      {"an agent added", [](Master* master) { master->addAgents(); }},
      {"its first offer",
       [&](Master* master) {
         master->resume();
         offer(master);
       }},
  };

  const std::vector<Step> again = {
      {"a decline", [](Master* master) { master->decline(None()); }},
      {"an offer", offer},
      {"an accept", [](Master* master) { master->accept(); }},
      {"an end", [](Master* master) { master->end(); }},
      {"an offer after it", offer},
      {"a decline with a filter",
       [&](Master* master) { master->decline(filters); }},
      {"an offer past filters", offer},
  };

  const auto allocator = create(settings, who);
  Master master(allocator.get(), size);
  waitForSession(who);

  printf(
      "%s, %zu agents, %zu frameworks, %zu roles: each, in us and calls of new\n"
      "  %-26s %15s %17s %8s\n",
      name.c_str(),
      size.agents,
      size.frameworks,
      size.roles,
      "",
      "caller",
      "allocator",
      "others");

  const auto price = [&](const Step& step) {
    const Spent before = master.spent();
    step.second(&master);
    master.barrier();
    return std::make_pair(before, master.spent());
  };

  // The built-in allocator accepts no agents while it is paused, so its first
  // offers are part of the price of adding them.
  master.addFrameworks();
  if (who != Who::BUILT_IN) {
    master.pause();
  }
  master.barrier();
  for (const Step& step : once) {
    const auto spent = price(step);
    printPrices(step.first, size.agents, spent.first, spent.second);
  }

  std::vector<std::pair<Spent, Spent>> best(again.size());
  for (int round = 0; round < settings.rounds; ++round) {
    for (size_t i = 0; i < again.size(); ++i) {
      const auto spent = price(again[i]);
      const auto ns = [](const std::pair<Spent, Spent>& each) {
        return (each.second.actor - each.first.actor).ns;
      };
      if (round == 0 || ns(spent) < ns(best[i])) {
        best[i] = spent;
      }
    }
  }

  for (size_t i = 0; i < again.size(); ++i) {
    printPrices(again[i].first, size.agents, best[i].first, best[i].second);
  }

  requireSidecar(who);
  fflush(stdout);
}

} // namespace {
} // namespace driver {
} // namespace allocator {


int main(int argc, char** argv)
{
  using namespace allocator::driver;

  Settings settings = parseArguments(argc, argv);
  if (!settings.sidecar.empty()) {
    settings.target = "unix:/tmp/driver-" + std::to_string(getpid()) + ".sock";
    sidecar.reset(new Sidecar(settings.sidecar, settings.target));
    if (!waitForLoops(settings.sidecar, settings.target)) {
      fail("the sidecar's loops were not compiled within a minute");
    }
  }

  setenv("LIBPROCESS_IP", "127.0.0.1", 1);
  if (settings.measure == Measure::PRICES) {
    setenv("LIBPROCESS_NUM_WORKER_THREADS", "1", 1);
  }
  google::InitGoogleLogging(argv[0]);
  process::initialize();

  std::string load;
  std::getline(std::ifstream("/proc/loadavg"), load);
  printf("load average %s\n", load.c_str());

  for (const Size& size : settings.sizes) {
    std::map<Who, Times> times;
    for (const auto& each : NAMES) {
      if (settings.only.count(each.second) == 0) {
        continue;
      }
      switch (settings.measure) {
        case Measure::TIMES:
          times[each.second] = run(settings, size, each.second);
          break;
        case Measure::PRICES:
          priceAll(settings, size, each.first, each.second);
          break;
        case Measure::LOOP:
          for (size_t intervalMs : settings.intervalsMs) {
            loop(settings, size, each.first, each.second, intervalMs);
          }
          break;
      }
    }
    if (settings.measure == Measure::TIMES) {
      print(size, times);
    }
  }

  sidecar.reset();
  return 0;
}
