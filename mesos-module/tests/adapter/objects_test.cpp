#include "adapter/objects.hpp"

#include <map>
#include <random>
#include <set>
#include <vector>

#include "tests/adapter/world.hpp"

namespace allocator {
namespace adapter {
namespace {

class ObjectsTest : public ::testing::Test
{
protected:
  ObjectsTest()
    : objects([this](uint32_t resourceClass, const brain::Traits& traits) {
        defined[resourceClass] = traits;
      })
  {
  }

  // Converts to parts and back.
  Resources through(const Resources& resources)
  {
    return objects.toResources(objects.toParts(resources));
  }

  uint32_t classOf(const Resource& resource)
  {
    return objects.toParts(resource).at(0).resourceClass;
  }

  std::map<uint32_t, brain::Traits> defined;
  Objects objects;
};


Resource volume(const std::string& id, const std::string& size = "8")
{
  Resource resource = *parse("disk(a):" + size).begin();
  resource.mutable_disk()->mutable_persistence()->set_id(id);
  resource.mutable_disk()->mutable_persistence()->set_principal("p");
  resource.mutable_disk()->mutable_volume()->set_container_path(id);
  resource.mutable_disk()->mutable_volume()->set_mode(mesos::Volume::RW);
  return resource;
}


Resource labelled(const std::string& one, const std::string& other)
{
  Resource resource = *parse("cpus(a):2").begin();
  resource.mutable_reservations(0)->set_type(
      Resource::ReservationInfo::DYNAMIC);
  for (const std::string& key : {one, other}) {
    mesos::Label* label =
        resource.mutable_reservations(0)->mutable_labels()->add_labels();
    label->set_key(key);
    label->set_value("value");
  }
  return resource;
}


TEST_F(ObjectsTest, EveryFormComesBackAsItWas)
{
  Resource mount = *parse("disk:100").begin();
  mount.mutable_disk()->mutable_source()->set_type(
      Resource::DiskInfo::Source::MOUNT);
  mount.mutable_disk()->mutable_source()->mutable_mount()->set_root("/mnt");

  Resource revocable = *parse("cpus:1.5").begin();
  revocable.mutable_revocable();

  Resource shared = volume("shared");
  shared.mutable_shared();

  Resource provided = *parse("mem:512").begin();
  provided.mutable_provider_id()->set_value("provider");

  const Resources all = parse("cpus:2.001;mem:64;ports:[1-3, 9-9, 31000-32000];"
                              "zones:{b,a};cpus(eng):3") +
      mount + revocable + volume("one") + volume("two") + shared + shared +
      provided + labelled("x", "y");

  EXPECT_EQ(all, through(all));
  EXPECT_EQ(2u, through(all).count(shared));
}


// A divisible resource keeps its class whatever its amount.
TEST_F(ObjectsTest, AnObjectMadeSmallerIsOfTheSamePiece)
{
  const uint32_t cpus = classOf(*parse("cpus:4").begin());
  EXPECT_EQ(cpus, classOf(*allocated("cpus:1", "eng").begin()));
  EXPECT_NE(cpus, classOf(*parse("cpus(eng):1").begin()));

  const Resources some =
      objects.toResources({brain::Part{cpus, 1500, brain::Spans()}});
  EXPECT_EQ(parse("cpus:1.5"), some);
}


// Mesos decides whether objects are equal: neither the order of labels nor the
// mount path of a volume matters.
TEST_F(ObjectsTest, WhatMesosTakesForTheSameIsOnePiece)
{
  const Resource xy = labelled("x", "y");
  const Resource yx = labelled("y", "x");
  EXPECT_EQ(Resources(xy) == Resources(yx), classOf(xy) == classOf(yx));
  EXPECT_NE(classOf(xy), classOf(labelled("x", "z")));

  Resource elsewhere = volume("one");
  elsewhere.mutable_disk()->mutable_volume()->set_container_path("elsewhere");
  EXPECT_EQ(
      Resources(volume("one")) == Resources(elsewhere),
      classOf(volume("one")) == classOf(elsewhere));
  EXPECT_NE(classOf(volume("one")), classOf(volume("two")));
}


// A volume of another size is another object.
TEST_F(ObjectsTest, WhatCannotBeDividedIsAPieceOfItsSize)
{
  const uint32_t small = classOf(volume("one"));
  const uint32_t large = classOf(volume("one", "9"));
  EXPECT_NE(small, large);
  EXPECT_EQ(8000, defined[small].unit);
  EXPECT_EQ(9000, defined[large].unit);
  EXPECT_EQ(wire::DISK_FORM_VOLUME, defined[small].form);
  EXPECT_EQ("a", defined[small].reservedRole);
  EXPECT_EQ(1u, defined[small].depth);
}


// Resources are grouped by the role that they are allocated to.
TEST_F(ObjectsTest, EachRoleHasItsOwn)
{
  const auto parts = objects.toRoleParts(
      allocated("cpus:1", "a") + allocated("cpus:2;mem:5", "b"));
  ASSERT_EQ(2u, parts.size());

  for (const brain::RoleParts& each : parts) {
    const Resources resources = objects.toResources(each.parts);
    EXPECT_EQ(
        each.role == "a" ? parse("cpus:1") : parse("cpus:2;mem:5"), resources);
  }
}


// Resources without an allocation count for a role as well: if they were
// ignored, resources in use would be offered again.
TEST_F(ObjectsTest, WhatNamesNoRoleIsTakenAllTheSame)
{
  const auto parts = objects.toRoleParts(parse("cpus:9") + parse("mem(eng):7"));
  ASSERT_EQ(2u, parts.size());

  for (const brain::RoleParts& each : parts) {
    const Resources resources = objects.toResources(each.parts);
    EXPECT_EQ(
        each.role == "eng" ? parse("mem(eng):7") : parse("cpus:9"), resources);
  }
}


// The number of a forgotten resource class is reused.
TEST_F(ObjectsTest, AForgottenNumberNamesSomethingElse)
{
  const uint32_t first = classOf(volume("one"));
  const uint32_t second = classOf(*parse("cpus:1").begin());
  const uint64_t before = objects.generation();
  objects.forget({first, second});
  EXPECT_NE(before, objects.generation());

  const brain::Parts lost = {brain::Part{first, 8000, brain::Spans()}};
  EXPECT_TRUE(objects.toResources(lost).empty());

  defined.clear();
  classOf(volume("two"));
  classOf(*parse("cpus:1").begin());
  EXPECT_EQ(2u, defined.size());
  EXPECT_LE(defined.rbegin()->first, std::max(first, second));
}


// An agent may return repeatedly with other items.
TEST_F(ObjectsTest, ItemsWithoutEndTakeABoundedRoom)
{
  const auto setOf = [](const std::string& name, int first, int count) {
    Resource resource;
    resource.set_name(name);
    resource.set_type(mesos::Value::SET);
    for (int i = first; i < first + count; ++i) {
      resource.mutable_set()->add_item(
          std::to_string(i) + std::string(size_t(1) << 16, 'x'));
    }
    return resource;
  };
  const auto amountOf = [this](const Resource& resource) {
    const brain::Parts parts = objects.toParts(resource);
    return parts.empty() ? 0 : parts.front().amount / 1000;
  };

  // The first resource gets half of the room, and keeps its items.
  const int most = brain::ITEM_BYTES_MAX / (2 * ((size_t(1) << 17) + 256)) + 1;
  int taken = 0;
  for (int i = 0; i < 2 * most; i += 100) {
    taken += amountOf(setOf("zones", i, 100));
  }
  EXPECT_LT(most / 2, taken);
  EXPECT_GE(most, taken);
  EXPECT_EQ(100, amountOf(setOf("zones", 0, 100)));
  EXPECT_EQ(Resources(setOf("zones", 0, 100)), through(setOf("zones", 0, 100)));
  EXPECT_EQ(0, amountOf(setOf("zones", 3 * most, 1)));

  // Another resource still has room. Once the first resource is forgotten, its
  // new items have room, too.
  EXPECT_EQ(100, amountOf(setOf("racks", 0, 100)));
  objects.forget({classOf(setOf("zones", 0, 1))});
  EXPECT_EQ(1, amountOf(setOf("zones", 3 * most, 1)));
}


// The module's notion of divisible resources agrees with Mesos's.
TEST_F(ObjectsTest, IndivisibleIsWhatMesosDoesNotShrink)
{
  using Source = Resource::DiskInfo::Source;

  for (Source::Type type :
       {Source::PATH,
        Source::MOUNT,
        Source::BLOCK,
        Source::RAW,
        Source::UNKNOWN}) {
    for (int bits = 0; bits < 16; ++bits) {
      Resource resource = *parse("disk(a):8").begin();
      resource.mutable_disk();

      if (type != Source::UNKNOWN) {
        Source* source = resource.mutable_disk()->mutable_source();
        source->set_type(type);
        if ((bits & 1) != 0) {
          source->set_id("id");
        }
        if ((bits & 2) != 0) {
          source->set_profile("profile");
        }
      }
      if ((bits & 4) != 0) {
        resource.mutable_disk()->mutable_persistence()->set_id("p");
      }
      if ((bits & 8) != 0) {
        resource.mutable_provider_id()->set_value("provider");
      }

      mesos::Value::Scalar half;
      half.set_value(4);
      Resource shrunk = resource;
      EXPECT_EQ(!Resources::shrink(&shrunk, half), traitsOf(resource).unit > 0)
          << resource.ShortDebugString();
    }
  }
}


// The brain's difference, intersection and containment agree with Mesos's.
TEST_F(ObjectsTest, ArithmeticIsThatOfMesos)
{
  std::mt19937 random(7);
  const std::vector<Resource> volumes = {
      volume("one"), volume("two"), volume("one", "9")};

  auto draw = [&]() {
    Resources result;
    for (const char* name : {"cpus", "mem", "cpus(eng)"}) {
      if (random() % 3 > 0) {
        const double amount = (1 + random() % 5000) / 1000.0;
        result += parse(name + std::string(":") + std::to_string(amount));
      }
    }
    for (const Resource& each : volumes) {
      if (random() % 3 == 0) {
        result += each;
      }
    }
    const int begin = 1 + random() % 20;
    const int end = begin + random() % 20;
    return result +
        parse("ports:[" + std::to_string(begin) + "-" + std::to_string(end) +
              ", 50-" + std::to_string(50 + random() % 9) + "]");
  };

  for (int round = 0; round < 2000; ++round) {
    const Resources one = draw();
    const Resources other = draw();
    brain::Parts left = objects.toParts(one);
    const brain::Parts what = objects.toParts(other);

    EXPECT_EQ(one.contains(other), brain::contains(left, what));
    EXPECT_EQ(
        one - (one - other), objects.toResources(brain::common(left, what)));
    brain::subtract(what, &left);
    ASSERT_EQ(one - other, objects.toResources(left)) << "round " << round;
  }
}

// The SDK for stateful services gives each reservation its own label. Comparing
// all pairs of 10,000 reservations would take minutes.
TEST_F(ObjectsTest, ThousandsThatDifferInALabelAreToldApart)
{
  std::vector<Resource> all;
  for (int i = 0; i < 10000; ++i) {
    all.push_back(labelled("id" + std::to_string(i), "of"));
  }

  std::set<uint32_t> classes;
  for (const Resource& each : all) {
    classes.insert(classOf(each));
  }
  EXPECT_EQ(all.size(), classes.size());

  // For Mesos the order of labels does not matter.
  for (int i = 0; i < 10000; ++i) {
    EXPECT_EQ(
        classOf(all[i]), classOf(labelled("of", "id" + std::to_string(i))));
  }

  Resource other = all[0];
  other.mutable_reservations(0)->set_principal("somebody");
  EXPECT_EQ(0u, classes.count(classOf(other)));
  EXPECT_EQ(10001u, defined.size());
}


} // namespace {
} // namespace adapter {
} // namespace allocator {
