#include "adapter/handles.hpp"

#include "adapter_world.hpp"

namespace allocator {
namespace adapter {
namespace {

TEST(HandleTableTest, TheLowestFreeHandleComesFirst)
{
  HandleTable<AgentID> table;
  EXPECT_EQ(1u, table.bind(agentId("a")));
  EXPECT_EQ(2u, table.bind(agentId("b")));
  EXPECT_EQ(3u, table.bind(agentId("c")));
  EXPECT_EQ(2u, table.bind(agentId("b")));

  table.release(agentId("b"));
  table.release(agentId("a"));
  EXPECT_EQ(nullptr, table.id(2));
  EXPECT_EQ(1u, table.bind(agentId("d")));
  EXPECT_EQ(2u, table.bind(agentId("e")));
  EXPECT_EQ(4u, table.bind(agentId("f")));
}


TEST(HandleTableTest, AnyNumberMayBeAskedFor)
{
  HandleTable<AgentID> table;
  table.bind(agentId("a"));
  EXPECT_EQ(nullptr, table.id(0));
  EXPECT_EQ(nullptr, table.id(2));
  EXPECT_EQ(nullptr, table.id(UINT32_MAX));
  EXPECT_EQ(agentId("a"), *table.id(1));
}


// A number that is bound again must not take a decision for its earlier
// bearer.
TEST(HandleTableTest, WhoeverCouldNotKnowOfTheEndIsExcused)
{
  HandleTable<FrameworkID> table;
  const uint32_t handle = table.bind(frameworkId("one"));
  table.told(handle, 3);
  table.release(frameworkId("one"), 7);

  EXPECT_TRUE(table.excused(handle, 6));
  EXPECT_FALSE(table.excused(handle, 7));
  EXPECT_FALSE(table.excused(handle + 1, 0));
  EXPECT_FALSE(table.excused(0, 0));
}


TEST(HandleTableTest, ABindingKnowsWhenItWasTold)
{
  HandleTable<AgentID> table;
  table.told(table.bind(agentId("a")), 5);
  EXPECT_EQ(5u, table.batch(1));

  table.release(agentId("a"));
  EXPECT_EQ(0u, table.batch(1));
  table.told(table.bind(agentId("b")), 9);
  EXPECT_EQ(9u, table.batch(1));
}


TEST(KindTableTest, WhatCanBeAddedUpIsOneKind)
{
  KindTable kinds;
  const uint32_t cpus = kinds.intern(*parse("cpus:1").begin());
  EXPECT_EQ(0u, cpus);
  EXPECT_EQ(cpus, kinds.intern(*allocated("cpus:7", "a").begin()));
  EXPECT_NE(cpus, kinds.intern(*parse("mem:1").begin()));

  const uint32_t reserved = kinds.intern(*parse("cpus(a):1").begin());
  EXPECT_NE(cpus, reserved);
  EXPECT_NE(reserved, kinds.intern(*parse("cpus(b):1").begin()));
  EXPECT_EQ(reserved, kinds.intern(*parse("cpus(a):5").begin()));

  Resource revocable = *parse("cpus:1").begin();
  revocable.mutable_revocable();
  EXPECT_NE(cpus, kinds.intern(revocable));
  EXPECT_EQ(5u, kinds.takeNew().size());
  EXPECT_TRUE(kinds.takeNew().empty());
}


TEST(KindTableTest, SingleVolumesAreNotToldApart)
{
  KindTable kinds;
  Resource volume = *parse("disk(a):8").begin();
  const uint32_t space = kinds.intern(volume);

  volume.mutable_disk()->mutable_persistence()->set_id("one");
  volume.mutable_disk()->mutable_volume()->set_container_path("x");
  const uint32_t persistent = kinds.intern(volume);
  EXPECT_NE(space, persistent);

  volume.mutable_disk()->mutable_persistence()->set_id("two");
  volume.mutable_disk()->mutable_volume()->set_container_path("y");
  EXPECT_EQ(persistent, kinds.intern(volume));
  EXPECT_EQ(2u, kinds.size());

  const std::vector<wire::Kind> told = kinds.takeNew();
  EXPECT_TRUE(told[1].disk().atomic());
  EXPECT_EQ("", told[1].disk().persistence_id());
}


TEST(KindTableTest, LookingForAKindDoesNotMakeIt)
{
  KindTable kinds;
  EXPECT_TRUE(kinds.find(*parse("cpus:1").begin()).isNone());
  EXPECT_FALSE(kinds.known(0));
}


TEST(RoleTableTest, AParentComesBeforeItsChild)
{
  RoleTable roles;
  const uint32_t leaf = roles.bind("eng/ads/web");
  const std::vector<wire::Role> fresh = roles.takeNew();
  ASSERT_EQ(3u, fresh.size());
  EXPECT_EQ("eng", fresh[0].path());
  EXPECT_EQ("eng/ads", fresh[1].path());
  EXPECT_EQ("eng/ads/web", fresh[2].path());
  EXPECT_EQ(leaf, fresh[2].role());

  roles.bind("eng/ads");
  EXPECT_TRUE(roles.takeNew().empty());
}


TEST(AmountTest, ElementsAreCounted)
{
  EXPECT_EQ(1500, amountOf(*parse("cpus:1.5").begin()));
  EXPECT_EQ(7000, amountOf(*parse("ports:[1-5, 9-10]").begin()));
  EXPECT_EQ(2000, amountOf(*parse("zones:{a,b}").begin()));
}

} // namespace {
} // namespace adapter {
} // namespace allocator {
