#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <process/process.hpp>

#include <stout/numify.hpp>
#include <stout/os.hpp>
#include <stout/stopwatch.hpp>
#include <stout/strings.hpp>

#include "adapter/allocator.hpp"

#include "driver_master.hpp"

// Measures our allocator, with a real sidecar, beside the one that is
// built into Mesos: both in this process, through the same interface, one
// after the other. It says how long each took and the ratio of the two.
//
//     driver --target unix:/run/sidecar.sock --sizes 1000x100,10000x1000
//
//     --target   where the sidecar is; its loops should be compiled
//     --sidecar  a program to start instead; it gets `serve --listen ...`
//     --sizes    agents x frameworks, or agents x frameworks x roles
//     --rounds   repetitions; the least time counts
//     --only     "ours" or "built-in"
//     --measure  "times" (else), or "prices": what each step costs the caller
//                and the allocator's thread, in processor time and calls of
//                `new`; all actors share one thread then

namespace allocator {
namespace driver {
namespace {

struct Settings
{
  std::string target;
  std::string sidecar;
  std::string only;
  bool prices = false;
  std::vector<Size> sizes{{1000, 100, 1}, {10000, 1000, 1}};
  int rounds = 3;
};


[[noreturn]] void fail(const std::string& message)
{
  std::cerr << "driver: " << message << std::endl;
  exit(2);
}


std::vector<Size> parseSizes(const std::string& text)
{
  std::vector<Size> sizes;

  for (const std::string& each : strings::split(text, ",")) {
    std::vector<size_t> numbers;
    for (const std::string& part : strings::split(each, "x")) {
      const Try<size_t> number = numify<size_t>(part);
      if (number.isError() || number.get() == 0) {
        fail("--sizes has '" + each + "'; 1000x100 would be right");
      }
      numbers.push_back(number.get());
    }

    if (numbers.size() < 2 || numbers.size() > 3) {
      fail("--sizes has '" + each + "'; 1000x100 would be right");
    }

    sizes.push_back(
        Size{numbers[0], numbers[1], numbers.size() == 3 ? numbers[2] : 1});
  }

  return sizes;
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
      settings.only = value;
    } else if (name == "--measure") {
      settings.prices = value == "prices";
    } else if (name == "--sizes") {
      settings.sizes = parseSizes(value);
    } else if (name == "--rounds") {
      settings.rounds = std::max(1, atoi(value.c_str()));
    } else {
      fail("no option is called " + name);
    }
  }

  if (settings.target.empty() == settings.sidecar.empty()) {
    fail("give either --target or --sidecar");
  }

  return settings;
}


// A sidecar of our own; it ends with us.
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
  pid_t pid;
};


// A sidecar serves before it has loaded its compiled loops, many times
// slower; what is to be measured comes after that.
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


double seconds(const std::function<void()>& work)
{
  Stopwatch watch;
  watch.start();
  work();
  return watch.elapsed().secs();
}


void require(bool done, const char* what)
{
  if (!done) {
    fail(std::string("not every agent was offered within a minute: ") + what);
  }
}


// Smallest of several rounds; the first one warms up.
double least(int rounds, const std::function<double()>& round)
{
  round();
  double best = round();
  for (int i = 1; i < rounds; ++i) {
    best = std::min(best, round());
  }
  return best;
}


// Adds everything to a master that has nothing.
double populate(Master* master, bool ours)
{
  if (ours && !waitForMetric("allocator/sidecar/connected", 1)) {
    fail("no session with the sidecar within a minute");
  }

  return seconds([&]() { require(master->populate(), "add"); });
}


Times play(Master* master, int rounds, bool ours)
{
  Times times;

  times.decline = least(rounds, [&]() {
    const double result = seconds([&]() {
      master->decline(None());
      master->barrier();
    });
    require(master->offerAll(), "decline");
    return result;
  });

  times.reoffer = least(rounds, [&]() {
    return seconds([&]() { require(master->reoffer(None()), "reoffer"); });
  });

  times.events = least(rounds, [&]() {
    const double result = seconds([&]() {
      times.eventCount = master->accept() + master->end();
      master->barrier();
    });
    require(master->offerAll(), "events");
    return result;
  });

  mesos::Filters filters;
  filters.set_refuse_seconds(3600);
  times.refuse = least(rounds, [&]() {
    return seconds([&]() { require(master->reoffer(filters), "refuse"); });
  });

  if (ours && !waitForMetric("allocator/sidecar/fallback_cycles", 0)) {
    fail("the module decided itself; the sidecar was too slow or away");
  }

  return times;
}


void printRow(const char* what, double ours, double builtIn)
{
  printf("  %-34s %10.4f %10.4f %8.2f\n", what, ours, builtIn, ours / builtIn);
}


void print(const Size& size, const Times& ours, const Times& builtIn)
{
  printf(
      "%zu agents, %zu frameworks, %zu roles\n"
      "  %-34s %10s %10s %8s\n",
      size.agents,
      size.frameworks,
      size.roles,
      "",
      "ours",
      "built-in",
      "ratio");
  printRow("add all, until all is offered, s", ours.add, builtIn.add);
  printRow("decline all, until booked, s", ours.decline, builtIn.decline);
  printRow("decline all, until reoffered, s", ours.reoffer, builtIn.reoffer);
  printRow("the same with filters, s", ours.refuse, builtIn.refuse);
  printRow("accept and end all, booked, s", ours.events, builtIn.events);
  printRow(
      "  events/s",
      ours.eventCount / ours.events,
      builtIn.eventCount / builtIn.events);
  printRow(
      "  us/offer, reoffered",
      ours.reoffer / size.agents * 1e6,
      builtIn.reoffer / size.agents * 1e6);
  fflush(stdout);
}


std::unique_ptr<mesos::allocator::Allocator> create(
    const Settings& settings,
    bool ours)
{
  session::Parameters parameters;
  parameters.transport.channel.target = settings.target;
  parameters.fallbackAfter = session::Duration(60000);
  parameters.deadlines.answer = session::Duration(60000);

  if (ours) {
    return makeAllocator(parameters);
  }
  return std::unique_ptr<mesos::allocator::Allocator>(
      mesos::allocator::Allocator::create("HierarchicalDRF", "drf", "drf")
          .get());
}


Times run(const Settings& settings, const Size& size, bool ours)
{
  if (settings.only == (ours ? "built-in" : "ours")) {
    return Times();
  }

  // Each round of adding needs a master of its own; the last one goes on.
  const double before = least(settings.rounds - 1, [&]() {
    const auto allocator = create(settings, ours);
    Master master(allocator.get(), size);
    return populate(&master, ours);
  });

  std::unique_ptr<mesos::allocator::Allocator> allocator =
      create(settings, ours);
  Master master(allocator.get(), size);
  const double last = populate(&master, ours);

  Times times = play(&master, settings.rounds, ours);
  times.add = std::min(before, last);
  return times;
}


// The steps of the table of prices, each with how often it is taken.
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


// Of several rounds the one that cost the allocator least is shown.
void priceAll(const Settings& settings, const Size& size, bool ours)
{
  if (settings.only == (ours ? "built-in" : "ours")) {
    return;
  }

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

  const auto allocator = create(settings, ours);
  Master master(allocator.get(), size);
  if (ours && !waitForMetric("allocator/sidecar/connected", 1)) {
    fail("no session with the sidecar within a minute");
  }

  printf(
      "%s, %zu agents, %zu frameworks, %zu roles: each, in us and calls of new\n"
      "  %-26s %15s %17s %8s\n",
      ours ? "ours" : "built-in",
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

  // The built-in allocator takes no agent then: its first offers are in the
  // price of adding.
  master.addFrameworks();
  if (ours) {
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

  if (ours && !waitForMetric("allocator/sidecar/fallback_cycles", 0)) {
    fail("the module decided itself; the sidecar was too slow or away");
  }
  fflush(stdout);
}

} // namespace {
} // namespace driver {
} // namespace allocator {


int main(int argc, char** argv)
{
  using namespace allocator::driver;

  Settings settings = parseArguments(argc, argv);
  std::unique_ptr<Sidecar> sidecar;

  if (!settings.sidecar.empty()) {
    settings.target = "unix:/tmp/driver-" + std::to_string(getpid()) + ".sock";
    sidecar.reset(new Sidecar(settings.sidecar, settings.target));
    if (!waitForLoops(settings.sidecar, settings.target)) {
      fail("the sidecar's loops were not compiled within a minute");
    }
  }

  setenv("LIBPROCESS_IP", "127.0.0.1", 1);
  if (settings.prices) {
    setenv("LIBPROCESS_NUM_WORKER_THREADS", "1", 1);
  }
  google::InitGoogleLogging(argv[0]);
  process::initialize();

  std::string load;
  std::getline(std::ifstream("/proc/loadavg"), load);
  printf("load average %s\n", load.c_str());

  for (const Size& size : settings.sizes) {
    if (settings.prices) {
      priceAll(settings, size, true);
      priceAll(settings, size, false);
      continue;
    }

    const Times ours = run(settings, size, true);
    const Times builtIn = run(settings, size, false);
    print(size, ours, builtIn);
  }

  return 0;
}
