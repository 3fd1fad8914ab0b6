import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.nodemanager.NodeManager;
import org.apache.hadoop.yarn.server.resourcemanager.ResourceManager;

/** HDFS with one data node, and YARN with as many node managers as wanted, until standard input ends. */
public class OneMachine {
  private static final String ANY_PORT = "127.0.0.1:0";
  private static final String[] OF_CLIENTS = {
    YarnConfiguration.RM_ADDRESS, YarnConfiguration.RM_SCHEDULER_ADDRESS
  };

  /** Arguments: a folder; the number of node managers, 0 for no YARN. */
  public static void main(String[] arguments) throws Exception {
    File place = new File(arguments[0]);
    int nodes = Integer.parseInt(arguments[1]);
    Configuration settings = new Configuration();
    settings.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, new File(place, "hdfs").getPath());
    settings.set("dfs.permissions.enabled", "false");
    List<AutoCloseable> servers = new ArrayList<>();
    try (MiniDFSCluster files = new MiniDFSCluster.Builder(settings).numDataNodes(1).build()) {
      files.waitActive();
      Configuration ofClients = new Configuration(false);
      ofClients.set("fs.defaultFS", files.getURI().toString());
      ofClients.set("dfs.replication", "1");
      File folder = new File(place, "conf");
      folder.mkdirs();
      write(ofClients, new File(folder, "core-site.xml"));
      if (nodes > 0) {
        write(startYarn(settings, nodes, place, servers), new File(folder, "yarn-site.xml"));
      }
      System.out.println("READY " + files.getURI());
      // Ends when nobody holds it.
      System.in.read();
    } finally {
      for (int index = servers.size() - 1; index >= 0; index--) {
        servers.get(index).close();
      }
    }
    // Some servers leave threads.
    System.exit(0);
  }

  /** Start YARN; return what its clients need to know. */
  private static Configuration startYarn(
      Configuration settings, int nodes, File place, List<AutoCloseable> servers) {
    // MiniYARNCluster listens on the address of the machine's name, and this on the loopback.
    YarnConfiguration yarn = new YarnConfiguration(settings);
    for (String name : OF_CLIENTS) {
      yarn.set(name, ANY_PORT);
    }
    yarn.set(YarnConfiguration.RM_RESOURCE_TRACKER_ADDRESS, ANY_PORT);
    yarn.set(YarnConfiguration.RM_ADMIN_ADDRESS, ANY_PORT);
    yarn.set(YarnConfiguration.RM_WEBAPP_ADDRESS, ANY_PORT);
    yarn.set("yarn.scheduler.capacity.root.queues", "default");
    yarn.set("yarn.scheduler.capacity.root.default.capacity", "100");
    yarn.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1.0");
    yarn.set("yarn.scheduler.minimum-allocation-mb", "128");
    // What nodes tell decides when a container starts, and when the loss of one is known.
    yarn.set("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", "100");
    ResourceManager manager = new ResourceManager();
    servers.add(manager);
    manager.init(yarn);
    manager.start();
    for (int node = 0; node < nodes; node++) {
      YarnConfiguration own = new YarnConfiguration(manager.getConfig());
      own.set(YarnConfiguration.NM_ADDRESS, ANY_PORT);
      own.set(YarnConfiguration.NM_LOCALIZER_ADDRESS, ANY_PORT);
      own.set(YarnConfiguration.NM_COLLECTOR_SERVICE_ADDRESS, ANY_PORT);
      own.set(YarnConfiguration.NM_WEBAPP_ADDRESS, ANY_PORT);
      own.set(YarnConfiguration.NM_LOCAL_DIRS, new File(place, "node-" + node).getPath());
      own.set(YarnConfiguration.NM_LOG_DIRS, new File(place, "logs-" + node).getPath());
      own.set("yarn.nodemanager.resource.memory-mb", "4096");
      own.set("yarn.nodemanager.resource.cpu-vcores", "4");
      own.set("yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", "100");
      // Address space, of which a JVM reserves far more than it uses.
      own.set("yarn.nodemanager.vmem-check-enabled", "false");
      NodeManager started = new NodeManager();
      servers.add(started);
      started.init(own);
      started.start();
    }
    Configuration ofClients = new Configuration(false);
    for (String name : OF_CLIENTS) {
      ofClients.set(name, manager.getConfig().get(name));
    }
    return ofClients;
  }

  private static void write(Configuration settings, File file) throws Exception {
    try (OutputStream stream = new FileOutputStream(file)) {
      settings.writeXml(stream);
    }
  }
}
