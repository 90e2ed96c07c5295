#include "adapter/chop.hpp"

#include "adapter_world.hpp"

namespace allocator {
namespace adapter {
namespace {

Resources chop(const Resources& pool, Amounts wanted, const KindTable& kinds)
{
  return adapter::chop(pool, kinds, &wanted);
}


class ChopTest : public ::testing::Test
{
protected:
  uint32_t kind(const std::string& text)
  {
    return kinds.intern(*parse(text).begin());
  }

  KindTable kinds;
};


TEST_F(ChopTest, AmountsAreTakenByKind)
{
  const Resources pool = parse("cpus:8;mem:1024");
  const Resources taken =
      chop(pool, {{kind("cpus:1"), 1500}, {kind("mem:1"), 5000000}}, kinds);
  EXPECT_EQ(parse("cpus:1.5;mem:1024"), taken);
  EXPECT_TRUE(pool.contains(taken));
}


TEST_F(ChopTest, WhatIsNotThereGivesNothing)
{
  EXPECT_TRUE(chop(parse("cpus:8"), {{kind("mem:1"), 1000}}, kinds).empty());
  EXPECT_TRUE(chop(parse("cpus:8"), {{77, 1000}}, kinds).empty());
  EXPECT_TRUE(chop(parse("cpus:8"), {{kind("cpus:1"), -1}}, kinds).empty());
}


TEST_F(ChopTest, PortsAreSplitByCount)
{
  const Resources pool = parse("ports:[1-3, 10-20]");
  const uint32_t ports = kind("ports:[1-1]");

  EXPECT_EQ(parse("ports:[1-3, 10-11]"), chop(pool, {{ports, 5999}}, kinds));
  EXPECT_TRUE(chop(pool, {{ports, 999}}, kinds).empty());
  EXPECT_EQ(pool, chop(pool, {{ports, int64_t(1) << 53}}, kinds));
}


TEST_F(ChopTest, SetsAreSplitByCount)
{
  const Resources taken =
      chop(parse("zones:{a,b,c}"), {{kind("zones:{a}"), 2000}}, kinds);
  ASSERT_EQ(1u, taken.size());

  const Resource zones = *taken.begin();
  EXPECT_EQ(2, zones.set().item_size());
}


TEST_F(ChopTest, AMountDiskIsTakenWholeOrNotAtAll)
{
  Resource disk = *parse("disk:100").begin();
  disk.mutable_disk()->mutable_source()->set_type(
      Resource::DiskInfo::Source::MOUNT);
  disk.mutable_disk()->mutable_source()->mutable_mount()->set_root("/mnt");
  const uint32_t mount = kinds.intern(disk);

  EXPECT_TRUE(chop(disk, {{mount, 99999}}, kinds).empty());
  EXPECT_EQ(Resources(disk), chop(disk, {{mount, 100000}}, kinds));
}


Resource reserved(const std::string& text, const std::string& label)
{
  Resource resource = *parse(text).begin();
  resource.mutable_reservations(0)->set_type(
      Resource::ReservationInfo::DYNAMIC);
  mesos::Label* pair =
      resource.mutable_reservations(0)->mutable_labels()->add_labels();
  pair->set_key(label);
  return resource;
}


// They are one kind; an amount of it is made up of several objects, the
// last of which is split.
TEST_F(ChopTest, AnAmountMayComeFromSeveralObjects)
{
  const Resource one = reserved("cpus(a):2", "one");
  const Resource two = reserved("cpus(a):3", "two");
  const Resources pool = Resources(one) + two;
  const uint32_t cpus = kinds.intern(one);
  ASSERT_EQ(cpus, kinds.intern(two));

  for (int64_t amount : {1000, 2000, 2500, 4500, 5000}) {
    const Resources taken = chop(pool, {{cpus, amount}}, kinds);
    EXPECT_TRUE(pool.contains(taken));
    int64_t sum = 0;
    for (const Resource& each : taken) {
      sum += amountOf(each);
    }
    EXPECT_EQ(amount, sum);
  }
}


TEST_F(ChopTest, AllVolumesOfAKindAreGivenWhole)
{
  Resource volume = *parse("disk(a):10").begin();
  volume.mutable_disk()->mutable_persistence()->set_id("one");
  Resources pool = volume;
  volume.mutable_disk()->mutable_persistence()->set_id("two");
  volume.mutable_scalar()->set_value(20);
  pool += volume;
  const uint32_t volumes = kinds.intern(volume);

  EXPECT_EQ(pool, chop(pool, {{volumes, 30000}}, kinds));
  EXPECT_EQ(
      Resources(volume).size(), chop(pool, {{volumes, 29999}}, kinds).size());
  EXPECT_TRUE(chop(pool, {{volumes, 9999}}, kinds).empty());
}


// What the sidecar knows as the rest is given in whole objects, whatever
// they are.
TEST_F(ChopTest, TheRestIsGivenInWholeObjects)
{
  KindTable few(1);
  const uint32_t rest = few.intern(*parse("cpus(a):4").begin());
  ASSERT_EQ(rest, few.intern(*parse("cpus(b):3").begin()));
  ASSERT_TRUE(few.whole(rest));

  const Resources pool = parse("cpus(a):4;cpus(b):3");
  EXPECT_EQ(pool, chop(pool, {{rest, 7000}}, few));
  EXPECT_EQ(parse("cpus(b):3"), chop(pool, {{rest, 3500}}, few));
}


TEST_F(ChopTest, ABoundLeavesReservationsAlone)
{
  const Resources resources = parse("cpus:8;cpus(a):4;mem:100");
  EXPECT_EQ(
      parse("cpus:2;cpus(a):4;mem:100"), bound(resources, {{"cpus", 2000}}));
  EXPECT_EQ(parse("cpus(a):4;mem:100"), bound(resources, {{"cpus", 0}}));
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
