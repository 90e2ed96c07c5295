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

namespace allocator {
namespace driver {
namespace {

struct Settings
{
  std::string target;
  std::string sidecar;
  std::string only;
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
      times.eventCount = master->useAll();
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
  Parameters parameters;
  parameters.transport.channel.target = settings.target;
  parameters.fallbackAfter = session::Duration(60000);
  parameters.deadlines.answer = session::Duration(60000);

  return std::unique_ptr<mesos::allocator::Allocator>(
      ours
          ? new SidecarAllocator(parameters)
          : mesos::allocator::Allocator::create("HierarchicalDRF", "drf", "drf")
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
  google::InitGoogleLogging(argv[0]);
  process::initialize();

  std::string load;
  std::getline(std::ifstream("/proc/loadavg"), load);
  printf("load average %s\n", load.c_str());

  for (const Size& size : settings.sizes) {
    const Times ours = run(settings, size, true);
    const Times builtIn = run(settings, size, false);
    print(size, ours, builtIn);
  }

  return 0;
}
